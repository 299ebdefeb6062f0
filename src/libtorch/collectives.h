// Collectives: what a Communicator needs, with the calls of c10d. `run` is given a function that
// starts the work of one call on a group (c10d's ProcessGroup or Backend), and waits for its end.
#pragma once

#include <torch/torch.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>

#include "tamis/communicator.h"

namespace tamis::libtorch {

template <typename Run>
void reduce(torch::Device device, std::span<std::int64_t> numbers, Reduction reduction,
            const Run& run) {
  c10d::AllreduceOptions how;
  how.reduceOp = reduction == Reduction::sum       ? c10d::ReduceOp::SUM
                 : reduction == Reduction::minimum ? c10d::ReduceOp::MIN
                                                   : c10d::ReduceOp::MAX;
  const torch::Tensor here =
      torch::from_blob(numbers.data(), {static_cast<std::int64_t>(numbers.size())}, torch::kInt64);
  std::vector<torch::Tensor> tensors = {here.to(device)};
  run([&](auto& group) { return group.allreduce(tensors, how); });
  if (!tensors[0].is_same(here)) here.copy_(tensors[0]);
}

// c10d gathers equally long tensors: first the lengths, then everything as long as the longest.
template <typename Run>
std::vector<std::vector<std::byte>> gather(torch::Device device, std::size_t size,
                                           std::span<const std::byte> bytes, const Run& run) {
  const auto gather_rows = [&](const torch::Tensor& mine) {
    std::vector<torch::Tensor> inputs = {mine.to(device)};
    std::vector<std::vector<torch::Tensor>> outputs(1);
    for (std::size_t r = 0; r < size; ++r) outputs[0].push_back(torch::empty_like(inputs[0]));
    run([&](auto& group) { return group.allgather(outputs, inputs); });
    for (torch::Tensor& row : outputs[0]) row = row.cpu();
    return std::move(outputs[0]);
  };
  const std::vector<torch::Tensor> lengths =
      gather_rows(torch::full({1}, static_cast<std::int64_t>(bytes.size()), torch::kInt64));
  std::int64_t longest = 0;
  for (const torch::Tensor& length : lengths) {
    longest = std::max(longest, length.item<std::int64_t>());
  }
  std::vector<std::vector<std::byte>> all(size);
  if (longest == 0) return all;
  const torch::Tensor mine = torch::zeros({longest}, torch::kUInt8);
  if (!bytes.empty()) std::memcpy(mine.data_ptr(), bytes.data(), bytes.size());
  const std::vector<torch::Tensor> rows = gather_rows(mine);
  for (std::size_t r = 0; r < size; ++r) {
    const auto* const begin = static_cast<const std::byte*>(rows[r].const_data_ptr());
    all[r].assign(begin, begin + lengths[r].item<std::int64_t>());
  }
  return all;
}

}  // namespace tamis::libtorch
