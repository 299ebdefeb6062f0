#include "training/trainer/epoch_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "base/check.h"

namespace tamis::training {

namespace {

template <typename Read>
auto reading(const std::string& source, Read read) {
  try {
    return read();
  } catch (const Json::exception& error) {
    throw std::runtime_error(detail::concat(source, ": not as tamis writes it: ", error.what()));
  }
}

// A number; JSON has null for those that are not finite.
double number(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

}  // namespace

std::optional<ScoreHistogram> make_histogram(std::span<const float> scores) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const float score : scores) {
    if (std::isnan(score)) continue;
    low = std::min(low, static_cast<double>(score));
    high = std::max(high, static_cast<double>(score));
  }
  if (low > high) return std::nullopt;
  ScoreHistogram histogram{.low = low, .high = high};
  const double bins_per_unit =
      high > low ? static_cast<double>(ScoreHistogram::kBins) / (high - low) : 0.0;
  for (const float score : scores) {
    if (std::isnan(score)) continue;
    const auto bin = static_cast<std::size_t>((static_cast<double>(score) - low) * bins_per_unit);
    ++histogram.counts[std::min(bin, ScoreHistogram::kBins - 1)];
  }
  return histogram;
}

Json to_json(const EpochMetrics& metrics) {
  Json json = {{"epoch", metrics.epoch},
               {"samples", metrics.samples},
               {"pruned", metrics.pruned},
               {"steps", metrics.steps},
               {"train_loss", metrics.train_loss},
               {"train_accuracy", metrics.train_accuracy},
               {"test_loss", metrics.test_loss},
               {"test_accuracy", metrics.test_accuracy},
               {"learning_rate", metrics.learning_rate},
               {"train_seconds", metrics.train_seconds},
               {"prune_seconds", metrics.prune_seconds},
               {"test_seconds", metrics.test_seconds}};
  if (metrics.scores) {
    json["score_histogram"] = {{"low", metrics.scores->low},
                               {"high", metrics.scores->high},
                               {"counts", metrics.scores->counts}};
  }
  return json;
}

EpochMetrics metrics_from_json(const Json& json, const std::string& source) {
  return reading(source, [&] {
    EpochMetrics metrics{.epoch = json.at("epoch").get<std::uint64_t>(),
                         .samples = json.at("samples").get<std::uint64_t>(),
                         .pruned = json.at("pruned").get<std::uint64_t>(),
                         .steps = json.at("steps").get<std::uint64_t>(),
                         .train_loss = json.at("train_loss").get<double>(),
                         .train_accuracy = json.at("train_accuracy").get<double>(),
                         .test_loss = number(json.at("test_loss")),
                         .test_accuracy = json.at("test_accuracy").get<double>(),
                         .learning_rate = json.at("learning_rate").get<double>(),
                         .train_seconds = json.at("train_seconds").get<double>(),
                         .prune_seconds = json.at("prune_seconds").get<double>(),
                         .test_seconds = json.at("test_seconds").get<double>(),
                         .scores = std::nullopt};
    if (const auto scores = json.find("score_histogram"); scores != json.end()) {
      using Counts = decltype(ScoreHistogram::counts);
      metrics.scores = {.low = scores->at("low").get<double>(),
                        .high = scores->at("high").get<double>(),
                        .counts = scores->at("counts").get<Counts>()};
    }
    return metrics;
  });
}

Json to_json(const RunningEpoch& running) {
  return {{"steps", running.steps},
          {"samples", running.samples},
          {"correct", running.correct},
          {"loss_sum", running.loss_sum},
          {"learning_rate", running.learning_rate},
          {"train_seconds", running.train_seconds},
          {"prune_seconds", running.prune_seconds}};
}

RunningEpoch running_from_json(const Json& json, const std::string& source) {
  return reading(source, [&] {
    return RunningEpoch{.steps = json.at("steps").get<std::uint64_t>(),
                        .samples = json.at("samples").get<std::uint64_t>(),
                        .correct = json.at("correct").get<std::uint64_t>(),
                        .loss_sum = json.at("loss_sum").get<double>(),
                        .learning_rate = json.at("learning_rate").get<double>(),
                        .train_seconds = json.at("train_seconds").get<double>(),
                        .prune_seconds = json.at("prune_seconds").get<double>()};
  });
}

}  // namespace tamis::training
