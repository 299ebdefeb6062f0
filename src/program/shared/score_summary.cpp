#include "program/shared/score_summary.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "program/shared/histogram.h"
#include "program/shared/terminal.h"
#include "tamis/score_view.h"

namespace tamis::program {

namespace {

using nlohmann::ordered_json;

constexpr std::size_t kNumBins = 12;

struct ScoreRange {
  std::uint64_t num_scored = 0;
  double mean = 0.0;
  float min = std::numeric_limits<float>::infinity();
  float max = -std::numeric_limits<float>::infinity();
};

ScoreRange statistics_of(std::span<const float> scores) {
  const ScoreMean mean = make_score_view(scores)->mean();
  ScoreRange statistics{.num_scored = mean.num_scored, .mean = mean.value};
  for (const float score : scores) {
    if (score < statistics.min) statistics.min = score;
    if (score > statistics.max) statistics.max = score;
  }
  return statistics;
}

}  // namespace

void add_score_facts(std::span<const float> scores, FactList& facts) {
  const ScoreRange statistics = statistics_of(scores);
  facts.add("scored", fmt::format("{} of {}", with_commas(statistics.num_scored),
                                  with_commas(scores.size())));
  if (statistics.num_scored == 0) return;
  facts.add("least score", fmt::format("{:.6g}", statistics.min));
  facts.add("mean score", fmt::format("{:.6g}", statistics.mean));
  facts.add("greatest score", fmt::format("{:.6g}", statistics.max));
}

ordered_json score_statistics_json(std::span<const float> scores) {
  const ScoreRange statistics = statistics_of(scores);
  if (statistics.num_scored == 0) return nullptr;
  return {{"min", statistics.min}, {"mean", statistics.mean}, {"max", statistics.max}};
}

ordered_json histogram_json(std::span<const float> scores) {
  ordered_json bins = ordered_json::array();
  for (const HistogramBin& bin : histogram(scores, kNumBins)) {
    bins.push_back({{"low", bin.low}, {"high", bin.high}, {"count", bin.count}});
  }
  return bins;
}

std::string score_histogram(std::span<const float> scores) {
  const auto bins = histogram(scores, kNumBins);
  if (bins.empty()) return "";
  return "\nHistogram of the scores\n" + format_histogram(bins, terminal_width(), has_utf8());
}

ordered_json scores_json(std::span<const float> scores) {
  ordered_json::array_t values;
  values.reserve(scores.size());
  for (const float score : scores) {
    values.emplace_back(std::isfinite(score) ? ordered_json(static_cast<double>(score))
                                             : ordered_json(nullptr));
  }
  return values;
}

}  // namespace tamis::program
