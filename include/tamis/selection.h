// Selection: which samples an epoch uses and with which weights; what a Policy returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tamis/bitmap.h"
#include "tamis/types.h"

namespace tamis {

// One SeTa group: samples with low <= score <= high.
struct ScoreGroup {
  std::size_t size = 0;
  float low = 0.0F;
  float high = 0.0F;
  double center = 0.0;
};

// How a policy came to its selection, for people and tools. Fields that do not apply stay empty.
struct SelectionReport {
  std::optional<double> threshold;               // InfoBatch: mean of the scored samples
  std::optional<std::size_t> num_below;          // InfoBatch: samples below the threshold
  std::optional<std::size_t> num_kept_of_below;  // InfoBatch: of these, kept
  std::vector<ScoreGroup> groups;                // SeTa, from easy to hard
  std::optional<std::size_t> window_begin;       // SeTa: groups [window_begin, window_end) are used
  std::optional<std::size_t> window_end;
  std::optional<double> within_group_sum_of_squares;  // SeTa
  std::optional<std::size_t> num_restored;  // put back by min_per_class and homogeneous batches
  std::optional<double> prune_ratio;        // target_prune: the ratio that it chose
  // target_prune: the pruned shares of the whole run that are still possible if the other epochs
  // can prune as little or as much as this one; if this one cannot prune, as the ratio allows.
  std::optional<double> lowest_reachable;
  std::optional<double> highest_reachable;
};

// A set of samples, some of them with a common weight other than 1. Two bits per sample.
struct Selection {
  Bitmap kept;
  // Of the kept samples, those whose loss counts `rescale` times. Empty bitmap: none.
  Bitmap rescaled = {};
  float rescale = 1.0F;
  SelectionReport report = {};

  // Every sample, weight 1.
  static Selection all(std::size_t num_samples);
};

}  // namespace tamis
