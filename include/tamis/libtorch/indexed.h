// Indexed: a batch that knows the samples it was made of.
#pragma once

#include <torch/data/example.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tamis/types.h"

namespace tamis::libtorch {

// Stands for one batch of one pass over the data. A batch is held by the user as long as somebody
// owns its ticket.
struct BatchTicket {
  std::uint64_t pass = 0;
  std::size_t number = 0;  // from 0 in each pass
};

// What a wrapped data set adds to its batches.
struct BatchOrigin {
  std::vector<SampleIndex> sample_indices;
  std::shared_ptr<const BatchTicket> ticket;  // null if no sampler of the handler asked for it
};

// The user's own batch with its origin. It is a Batch, so code written for Batch works unchanged;
// structured bindings work where Batch is a torch::data::Example.
template <typename Batch>
struct Indexed : Batch, BatchOrigin {
  static_assert(std::is_class_v<Batch> && !std::is_final_v<Batch>,
                "the data set's batches must be of a class type that can be derived from");

  Indexed(Batch batch, BatchOrigin origin)
      : Batch(std::move(batch)), BatchOrigin(std::move(origin)) {}
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
