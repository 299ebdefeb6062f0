#include "runs/epoch_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tamis::runs {

namespace {

ScoreHistogram histogram_from_json(const Fields& fields) {
  ScoreHistogram histogram{
      .low = fields.finite("low"), .high = fields.finite("high"), .counts = {}};
  if (histogram.high < histogram.low) {
    refuse(fields.source(), "high", fmt::format("at least low ({})", histogram.low),
           histogram.high);
  }
  const Json& counts = array_member(fields.json(), "counts", fields.source());
  if (counts.empty()) refuse(fields.source(), "counts", "an array of at least one count", counts);
  for (const Json& value : counts) {
    std::uint64_t count = 0;
    if (!get_whole(value, std::uint64_t{1} << 53U, count)) {
      refuse(fields.source(), fmt::format("counts[{}]", histogram.counts.size()),
             "a whole number of at least 0", value);
    }
    histogram.counts.push_back(count);
  }
  return histogram;
}

// A value that is not finite is no reason to refuse the run: it is what the reader should see.
MetricValues values_from_json(const Fields& fields, const std::vector<Metric>& metrics) {
  MetricValues values;
  for (const auto& [name, json] : fields.json().items()) {
    const auto metric = std::find_if(metrics.begin(), metrics.end(),
                                     [&key = name](const Metric& m) { return m.name == key; });
    if (metric == metrics.end()) {
      refuse(fields.source(), name, "one of \"metrics\" of config.json", json);
    }
    const double value = fields.number_or_nan(name.c_str());
    if (metric->is_fraction() && (value < 0.0 || value > 1.0)) {
      refuse(fields.source(), name, "in [0, 1], for its unit is fraction", value);
    }
    values[name] = value;
  }
  return values;
}

// In version 1 accuracies and losses stand among the other members.
Json with_values(const Json& json) {
  if (!json.is_object() || json.contains("values") || !json.contains("test_accuracy")) return json;
  Json line = json;
  for (const Metric& metric : classification_metrics()) {
    const auto found = json.find(metric.name);
    if (found != json.end()) line["values"][metric.name] = *found;
  }
  return line;
}

}  // namespace

std::optional<ScoreHistogram> make_histogram(std::span<const float> scores) {
  constexpr std::size_t kBins = 32;
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const float score : scores) {
    if (std::isnan(score)) continue;
    low = std::min(low, static_cast<double>(score));
    high = std::max(high, static_cast<double>(score));
  }
  if (low > high) return std::nullopt;
  ScoreHistogram histogram{.low = low, .high = high, .counts = std::vector<std::uint64_t>(kBins)};
  const double bins_per_unit = high > low ? static_cast<double>(kBins) / (high - low) : 0.0;
  for (const float score : scores) {
    if (std::isnan(score)) continue;
    const auto bin = static_cast<std::size_t>((static_cast<double>(score) - low) * bins_per_unit);
    ++histogram.counts[std::min(bin, kBins - 1)];
  }
  return histogram;
}

double EpochMetrics::value(const Metric& metric) const {
  const auto found = values.find(metric.name);
  return found == values.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
}

Json to_json(const EpochMetrics& metrics) {
  Json json = {{"epoch", metrics.epoch},
               {"samples", metrics.samples},
               {"pruned", metrics.pruned},
               {"steps", metrics.steps},
               {"train_seconds", metrics.train_seconds},
               {"prune_seconds", metrics.prune_seconds},
               {"test_seconds", metrics.test_seconds},
               {"values", metrics.values}};
  if (metrics.processor_seconds) json["processor_seconds"] = *metrics.processor_seconds;
  if (metrics.learning_rate) json["learning_rate"] = *metrics.learning_rate;
  if (metrics.score_seconds > 0.0) json["score_seconds"] = metrics.score_seconds;
  if (metrics.processor_share) json["processor_share"] = *metrics.processor_share;
  if (metrics.scores) {
    json["score_histogram"] = {{"low", metrics.scores->low},
                               {"high", metrics.scores->high},
                               {"counts", metrics.scores->counts}};
  }
  return json;
}

EpochMetrics epoch_from_json(const Json& json, const std::vector<Metric>& metrics,
                             const std::string& source) {
  const Json line = with_values(json);
  const Fields fields(line, source);
  EpochMetrics epoch{.epoch = fields.whole("epoch"),
                     .samples = fields.whole("samples"),
                     .pruned = fields.whole("pruned"),
                     .train_seconds = fields.amount("train_seconds"),
                     .values = values_from_json(fields.object("values"), metrics)};
  if (fields.find("steps") != nullptr) epoch.steps = fields.whole("steps");
  if (fields.find("learning_rate") != nullptr) {
    epoch.learning_rate = fields.amount("learning_rate");
  }
  if (fields.find("prune_seconds") != nullptr) {
    epoch.prune_seconds = fields.amount("prune_seconds");
  }
  if (epoch.prune_seconds > epoch.train_seconds) {
    refuse(source, "prune_seconds", fmt::format("at most train_seconds ({})", epoch.train_seconds),
           epoch.prune_seconds);
  }
  if (fields.find("test_seconds") != nullptr) epoch.test_seconds = fields.amount("test_seconds");
  if (fields.find("score_seconds") != nullptr) {
    epoch.score_seconds = fields.amount("score_seconds");
  }
  if (epoch.score_seconds > epoch.train_seconds) {
    refuse(source, "score_seconds", fmt::format("at most train_seconds ({})", epoch.train_seconds),
           epoch.score_seconds);
  }
  if (fields.find("processor_share") != nullptr) {
    epoch.processor_share = fields.amount("processor_share");
    if (*epoch.processor_share > 1.0) {
      refuse(source, "processor_share", "in [0, 1]", *epoch.processor_share);
    }
  }
  if (fields.find("processor_seconds") != nullptr) {
    epoch.processor_seconds = fields.amount("processor_seconds");
  }
  if (fields.find("score_histogram") != nullptr) {
    epoch.scores = histogram_from_json(fields.object("score_histogram"));
  }
  return epoch;
}

}  // namespace tamis::runs
