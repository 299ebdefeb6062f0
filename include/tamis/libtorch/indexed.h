// Indexed: a batch that knows the samples it was made of.
#pragma once

#include <torch/data/example.h>

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tamis/types.h"

namespace tamis::libtorch {

// The user's own batch with its samples, in the order of the batch. It is a Batch, so code written
// for Batch works unchanged; structured bindings work where Batch is a torch::data::Example.
template <typename Batch>
struct Indexed : Batch {
  static_assert(std::is_class_v<Batch> && !std::is_final_v<Batch>,
                "the data set's batches must be of a class type that can be derived from");

  Indexed(Batch batch, std::vector<SampleIndex> indices)
      : Batch(std::move(batch)), sample_indices(std::move(indices)) {}

  std::vector<SampleIndex> sample_indices;
};

template <std::size_t I, typename Data, typename Target>
auto& get(Indexed<torch::data::Example<Data, Target>>& batch) {
  if constexpr (I == 0) {
    return batch.data;
  } else {
    return batch.target;
  }
}
template <std::size_t I, typename Data, typename Target>
const auto& get(const Indexed<torch::data::Example<Data, Target>>& batch) {
  return get<I>(const_cast<Indexed<torch::data::Example<Data, Target>>&>(batch));
}
template <std::size_t I, typename Data, typename Target>
auto get(Indexed<torch::data::Example<Data, Target>>&& batch) {
  return std::move(get<I>(batch));
}

}  // namespace tamis::libtorch

template <typename Data, typename Target>
struct std::tuple_size<tamis::libtorch::Indexed<torch::data::Example<Data, Target>>>
    : std::integral_constant<std::size_t, std::is_void_v<Target> ? 1 : 2> {};

template <std::size_t I, typename Data, typename Target>
struct std::tuple_element<I, tamis::libtorch::Indexed<torch::data::Example<Data, Target>>> {
  using type = std::conditional_t<I == 0, Data, Target>;
};
