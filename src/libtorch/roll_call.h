// Roll call: which ranks are there? Answered through the store, when nothing else works any more.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

namespace tamis::libtorch {

// Every rank that calls it is there. Waits for the others until all have come, or for `patience`.
// Returns the ranks that did not come; nothing if the store itself does not answer. `name` must be
// new for every call, and the same on all ranks. Rank 0, which may run the store, stays until the
// others have their answer.
std::optional<std::vector<std::size_t>> call_roll(const c10::intrusive_ptr<c10d::Store>& store,
                                                  const std::string& name, std::size_t rank,
                                                  std::size_t size,
                                                  std::chrono::milliseconds patience);

// "1", "1 and 3", "1, 2 and 3".
std::string list_ranks(const std::vector<std::size_t>& ranks);

}  // namespace tamis::libtorch
