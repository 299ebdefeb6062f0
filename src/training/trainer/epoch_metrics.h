// EpochMetrics: what a run reports of one finished epoch; one line of metrics.jsonl.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "training/trainer/run_config.h"

namespace tamis::training {

// Equal bins from the lowest to the highest score; the highest itself is in the last bin.
struct ScoreHistogram {
  static constexpr std::size_t kBins = 32;

  double low = 0.0;
  double high = 0.0;
  std::array<std::uint64_t, kBins> counts{};

  friend bool operator==(const ScoreHistogram&, const ScoreHistogram&) = default;
};

// Of the scores that are not NaN; empty if there are none.
std::optional<ScoreHistogram> make_histogram(std::span<const float> scores);

// Sums over the steps of an epoch that have been taken.
struct RunningEpoch {
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  std::uint64_t correct = 0;
  double loss_sum = 0.0;       // of the batches' mean losses, without weights
  double learning_rate = 0.0;  // of the last step
  double train_seconds = 0.0;  // everything but evaluation and checkpoints
  double prune_seconds = 0.0;  // of these, for plans, weights and scores

  double mean_loss() const { return steps == 0 ? 0.0 : loss_sum / static_cast<double>(steps); }
  double accuracy() const {
    return samples == 0 ? 0.0 : static_cast<double>(correct) / static_cast<double>(samples);
  }
};

struct EpochMetrics {
  std::uint64_t epoch = 0;
  std::uint64_t samples = 0;
  std::uint64_t pruned = 0;
  std::uint64_t steps = 0;
  double train_loss = 0.0;
  double train_accuracy = 0.0;  // accuracies are fractions in [0, 1]
  double test_loss = 0.0;
  double test_accuracy = 0.0;
  double learning_rate = 0.0;
  double train_seconds = 0.0;
  double prune_seconds = 0.0;
  double test_seconds = 0.0;
  std::optional<ScoreHistogram> scores = std::nullopt;

  friend bool operator==(const EpochMetrics&, const EpochMetrics&) = default;
};

Json to_json(const EpochMetrics& metrics);
Json to_json(const RunningEpoch& running);

// The way back. Throw std::runtime_error that begins with `source`.
EpochMetrics metrics_from_json(const Json& json, const std::string& source);
RunningEpoch running_from_json(const Json& json, const std::string& source);

}  // namespace tamis::training
