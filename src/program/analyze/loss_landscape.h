// A synthetic loss landscape: what a training run would show, without a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tamis/array.h"
#include "tamis/pruner.h"

namespace tamis::program {

// Every sample has a difficulty, log-normally distributed. Its loss is that difficulty times a
// factor that falls from 1 to 0.1 over the run, times log-normal noise that is fresh in every
// epoch. A function of (seed, sample, epoch) alone.
class LossLandscape {
 public:
  LossLandscape(std::size_t num_samples, std::uint64_t num_epochs, std::uint64_t seed);

  // Losses of the samples, in their order, into `out`, which is as long.
  void losses(std::span<const std::uint32_t> samples, std::uint64_t epoch,
              std::span<float> out) const;

 private:
  std::uint64_t num_epochs_;
  std::uint64_t seed_;
  Array<float> difficulty_;
};

double mean_of(std::span<const float> losses);

// Gives the losses of samples [begin, begin + losses.size()) of the plan, and their mean, to a
// pruner as its score needs them: norms are such that they lead back to the losses.
void observe_batch(Pruner& pruner, std::size_t begin, std::span<const float> losses, double mean);

}  // namespace tamis::program
