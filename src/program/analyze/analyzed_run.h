// All that `tamis analyze` finds out about a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "program/analyze/score_fidelity.h"
#include "program/analyze/signal_analysis.h"

namespace tamis::program {

struct AnalyzeOptions {
  std::filesystem::path run;                           // folder of a run or of a recording
  std::optional<double> alpha = std::nullopt;          // unset: the run's own, 0.7 if it has none
  std::optional<std::uint64_t> sample = std::nullopt;  // of the time series; unset: a typical one
};

// One sample's losses and what its score is made of, visit by visit.
struct TimeSeries {
  std::uint32_t sample = 0;
  std::vector<analysis::Visit> visits;
  analysis::Decomposition parts;
};

struct AnalyzedRun {
  std::string name;  // method and data where they are known, else the folder
  std::size_t num_samples = 0;
  std::size_t num_recorded = 0;
  std::uint64_t num_steps = 0;
  std::uint64_t num_skipped = 0;
  std::uint64_t num_epochs = 0;
  std::uint32_t batch_size = 0;
  Spec score;  // the batch loss score that is taken apart
  // Empty if the visits are too few or their per-sample losses unknown; why_no_signal then says so.
  std::optional<SignalAnalysis> signal = std::nullopt;
  std::optional<TimeSeries> series = std::nullopt;
  std::optional<DecompositionCheck> check = std::nullopt;
  bool is_checked_on_run = false;  // the scores that the run saved; else replayed ones
  std::string why_no_signal = {};
  Fidelity fidelity = {};
};

// Throws std::runtime_error if there is no recording, if it is damaged, or if it is too short for
// both parts of the analysis; std::invalid_argument if an option is out of range.
AnalyzedRun analyze_run(const AnalyzeOptions& options);

// The form of analysis.json, which `tamis report` reads.
nlohmann::ordered_json to_json(const AnalyzedRun& run);
// Tables for people.
std::string to_text(const AnalyzedRun& run);

}  // namespace tamis::program
