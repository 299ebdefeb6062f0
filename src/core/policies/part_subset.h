// Random samples among all ranks' parts, each rank seeing its own part only.
#pragma once

#include <cstdint>
#include <span>

#include "base/random/random.h"
#include "core/plan/class_floor.h"
#include "tamis/bitmap.h"
#include "tamis/communicator.h"

namespace tamis::detail {

// A random key for every sample, a hash of its place in the whole data set. splitmix64 as a
// counter: different samples have different keys, because every step of the hash can be undone.
class SampleKeys {
 public:
  // `first` is the number of the part's first sample in the whole data set.
  SampleKeys(std::uint64_t seed, std::uint64_t epoch, Purpose purpose, std::uint64_t first)
      : start_(RandomStream(seed, epoch, purpose).next()), first_(first) {}

  std::uint64_t operator()(std::size_t i) const {
    std::uint64_t z = start_ + (first_ + i + 1) * 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

 private:
  std::uint64_t start_;
  std::uint64_t first_;
};

// This rank's part of a uniformly random subset of all ranks' candidates: of every class c,
// draws[c].num_wanted of its draws[c].num_left candidates. Without labels there is one class. The
// subset is the candidates with the smallest keys, so it does not depend on how the data set is cut
// into parts. Some 2 KiB per class are sent, however many samples there are. Requires: draws are
// the same on all ranks and num_left is the sum over all ranks of a class that is drawn from.
Bitmap choose_part(const Bitmap& candidates, std::span<const std::int32_t> labels,
                   std::span<const ClassDraw> draws, const SampleKeys& keys,
                   Communicator& communicator);

}  // namespace tamis::detail
