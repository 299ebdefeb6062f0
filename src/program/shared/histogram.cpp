#include "program/shared/histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "program/shared/table.h"

namespace tamis::program {

namespace {

// The range of the inner bins: all scores, or all but the outer 1 % if these take most of the
// range.
struct Limits {
  double low = 0.0;
  double high = 0.0;
};

double quantile(std::vector<float>& values, double share) {
  const auto rank = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + rank, values.end());
  return values[static_cast<std::size_t>(rank)];
}

Limits inner_limits(std::vector<float>& values, double min, double max) {
  const double low = quantile(values, 0.005);
  const double high = quantile(values, 0.995);
  return high > low && max - min > 2.0 * (high - low) ? Limits{low, high} : Limits{min, max};
}

std::string bar(double share, std::size_t width, bool utf8) {
  // Eighths of a column, the narrowest first.
  static constexpr const char* kParts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double columns = share * static_cast<double>(width);
  if (!utf8) return std::string(static_cast<std::size_t>(std::ceil(columns)), '#');
  const auto eighths = static_cast<std::size_t>(std::ceil(columns * 8.0));
  std::string text;
  for (std::size_t k = 0; k < eighths / 8; ++k) text += "█";
  return text + kParts[eighths % 8];
}

}  // namespace

std::vector<HistogramBin> histogram(std::span<const float> scores, std::size_t num_bins) {
  std::vector<float> values;
  values.reserve(scores.size());
  std::copy_if(scores.begin(), scores.end(), std::back_inserter(values),
               [](float score) { return std::isfinite(score); });
  if (values.empty()) return {};
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  const double min = *least;
  const double max = *greatest;
  if (min == max) return {{min, max, values.size()}};

  const Limits limits = inner_limits(values, min, max);
  const double step = (limits.high - limits.low) / static_cast<double>(num_bins);
  std::vector<HistogramBin> bins(num_bins);
  for (std::size_t k = 0; k < num_bins; ++k) {
    bins[k].low = limits.low + step * static_cast<double>(k);
    bins[k].high = limits.low + step * static_cast<double>(k + 1);
  }
  bins.front().low = min;
  bins.back().high = max;
  for (const float value : values) {
    const double place = std::floor((static_cast<double>(value) - limits.low) / step);
    const auto last = static_cast<double>(num_bins - 1);
    ++bins[static_cast<std::size_t>(std::clamp(place, 0.0, last))].count;
  }
  return bins;
}

std::string format_histogram(std::span<const HistogramBin> bins, std::size_t width, bool utf8) {
  std::size_t highest = 0;
  std::vector<std::string> labels;
  std::size_t label_width = 0;
  for (const HistogramBin& bin : bins) {
    highest = std::max(highest, bin.count);
    labels.push_back(
        fmt::format("{:>10.4g} .. {:<10.4g} {:>13}", bin.low, bin.high, with_commas(bin.count)));
    label_width = std::max(label_width, labels.back().size());
  }
  const std::size_t bar_width = width > label_width + 11 ? width - label_width - 1 : 10;
  std::string text;
  for (std::size_t k = 0; k < bins.size(); ++k) {
    const double share = static_cast<double>(bins[k].count) / static_cast<double>(highest);
    const std::string bars = bar(share, bar_width, utf8);
    text += labels[k] + (bars.empty() ? "" : " " + bars) + "\n";
  }
  return text;
}

}  // namespace tamis::program
