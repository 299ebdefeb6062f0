// A least share of every class in a selection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random/random.h"
#include "tamis/score_view.h"
#include "tamis/selection.h"

namespace tamis::detail {

// Of `num_left` samples of a class, `num_wanted` are chosen.
struct ClassDraw {
  std::uint64_t num_left = 0;
  std::uint64_t num_wanted = 0;
};

// What the class floor changes in a selection, by class; numbers are those of all ranks.
struct ClassDraws {
  std::span<const std::int32_t> labels = {};  // of this rank's samples
  std::uint64_t num_restored = 0;             // in all classes
  std::vector<ClassDraw> restored = {};       // of the pruned samples, those that come back
  // Of the rescaled and restored samples, those that get the weight. A class with num_left 0 keeps
  // its weights. Empty if the selection has one weight only.
  std::vector<ClassDraw> rescaled = {};
};

// Replaces the labels by class numbers 0, 1, 2, ... in the same order; returns the class sizes.
std::vector<std::size_t> number_classes(std::span<std::int32_t> labels);

// Pruned samples come back, uniformly at random in each class, until ceil(share * size) of every
// class are kept. Where the selection has weights, those of the class are dealt out again between
// its rescaled and its restored samples, so that their sum stays right. Collective. Requires:
// labels and sizes from number_classes, the labels of this rank's samples only.
ClassDraws draw_classes(const ScoreView& scores, std::span<const std::int32_t> labels,
                        std::span<const std::size_t> class_sizes, double share,
                        const Selection& selection);

// Makes the draws of a selection that is all here, one sample after the other.
void restore_one_by_one(ClassDraws draws, RandomStream& random, Selection& selection);

}  // namespace tamis::detail
