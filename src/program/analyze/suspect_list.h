// The samples of a run that are hard most often and most lastingly: where to look for wrong labels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runs/sample_list.h"
#include "tamis/analysis/hardness.h"
#include "tamis/recording.h"
#include "tamis/types.h"

namespace tamis::program {

// Hardest first.
struct SuspectList {
  Spec score;
  std::size_t num_samples = 0;
  std::size_t num_scored = 0;
  std::vector<std::uint64_t> epochs;  // after which scores were looked at; empty for a state
  std::vector<analysis::Hardness> samples;
  std::vector<std::vector<float>> curves;  // by sample and epoch, NaN before its first visit
  runs::SampleList who = {};               // as far as the run says
};

// The best score that the recording allows: per-sample losses if it has those of all samples, else
// gradients of watched outputs, else the losses it has. Empty if it has mean losses only.
std::optional<Spec> best_score(const Recording& recording);

// The `count` hardest.
SuspectList suspects_of_recording(const Recording& recording, const Spec& score, std::size_t count);
// By the scores of one moment. Throws as Pruner::from_file() does.
SuspectList suspects_of_state(const std::string& path, std::size_t count);

// How many labels are known to be wrong: of all samples, of the suspects.
std::size_t num_wrong_labels(const runs::SampleList& who);
std::size_t count_wrong(const SuspectList& suspects);

runs::Json to_json(const SuspectList& suspects);

}  // namespace tamis::program
