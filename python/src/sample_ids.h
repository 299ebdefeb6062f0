// Ids that travel with a batch: epoch and index in one integer, so that they survive as a tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tamis/bitmap.h"
#include "tamis/epoch_plan.h"
#include "tamis/types.h"

namespace tamis::python {

inline constexpr unsigned kIndexBits = 40;
inline constexpr SampleIndex kIndexMask = (SampleIndex{1} << kIndexBits) - 1;

// What is added to an index to make it the id of an epoch.
constexpr SampleIndex id_base(std::uint64_t epoch) {
  return static_cast<SampleIndex>(epoch + 1) << kIndexBits;
}

// The ids of one batch taken apart. A plain index has no epoch: the running one is meant.
class BatchIds {
 public:
  // `ids` must outlive it. Throws std::invalid_argument if they are of several epochs.
  explicit BatchIds(std::span<const SampleIndex> ids);

  std::optional<std::uint64_t> epoch() const { return epoch_; }
  std::span<const SampleIndex> indices() const { return indices_; }

 private:
  std::optional<std::uint64_t> epoch_;
  std::vector<SampleIndex> storage_;
  std::span<const SampleIndex> indices_;
};

// What is left of a plan when the next epoch begins: the weights, for batches still under way.
class PastWeights {
 public:
  explicit PastWeights(const EpochPlan& plan);

  std::uint64_t epoch() const { return epoch_; }
  // Throws std::out_of_range for a sample that the plan did not know.
  float weight_of(SampleIndex sample) const;
  double mean_weight_of(std::span<const SampleIndex> samples) const;

 private:
  std::uint64_t epoch_;
  std::uint64_t first_sample_;
  std::size_t num_samples_;
  float rescale_;
  Bitmap rescaled_;
};

}  // namespace tamis::python
