#include "runs/metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tamis::runs {

namespace {

constexpr std::string_view kFraction = "fraction";

int decimals_for(double typical) {
  constexpr int kDigits = 4;
  const double size = std::abs(typical);
  if (!(size > 0.0) || !std::isfinite(size)) return kDigits - 1;
  const int before_point = static_cast<int>(std::floor(std::log10(size))) + 1;
  return std::clamp(kDigits - before_point, 0, 8);
}

Metric metric_from_json(const Json& json, const std::string& source) {
  const Fields fields(json, source);
  Metric metric{.name = fields.text("name")};
  if (const Json* const unit = fields.find("unit")) {
    if (!unit->is_string()) refuse(source, "unit", "a text", *unit);
    metric.unit = unit->get<std::string>();
  }
  const std::string direction = fields.text("direction");
  if (direction != "higher" && direction != "lower") {
    refuse(source, "direction", "\"higher\" or \"lower\", whichever is better", direction);
  }
  metric.direction = direction == "higher" ? Direction::higher : Direction::lower;
  if (const Json* const headline = fields.find("headline")) {
    if (!headline->is_boolean()) refuse(source, "headline", "true or false", *headline);
    metric.is_headline = headline->get<bool>();
  }
  return metric;
}

}  // namespace

bool Metric::is_fraction() const { return unit == kFraction; }

std::string Metric::title() const {
  std::string text = name;
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

const std::vector<Metric>& classification_metrics() {
  const std::string fraction(kFraction);
  static const std::vector<Metric> metrics = {
      {.name = "test_accuracy", .unit = fraction, .is_headline = true},
      {.name = "test_loss", .direction = Direction::lower},
      {.name = "train_accuracy", .unit = fraction},
      {.name = "train_loss", .direction = Direction::lower}};
  return metrics;
}

const Metric& headline_of(const std::vector<Metric>& metrics) {
  return *std::find_if(metrics.begin(), metrics.end(),
                       [](const Metric& metric) { return metric.is_headline; });
}

Json to_json(const Metric& metric) {
  return {{"name", metric.name},
          {"unit", metric.unit},
          {"direction", metric.direction == Direction::higher ? "higher" : "lower"},
          {"headline", metric.is_headline}};
}

std::vector<Metric> metrics_from_json(const Json& config, const std::string& source) {
  std::vector<Metric> metrics;
  for (const Json& json : array_member(config, "metrics", source)) {
    const std::string place = fmt::format("{}: metrics[{}]", source, metrics.size());
    Metric metric = metric_from_json(json, place);
    if (std::any_of(metrics.begin(), metrics.end(),
                    [&](const Metric& other) { return other.name == metric.name; })) {
      refuse(place, "name", "a name of its own", metric.name);
    }
    metrics.push_back(std::move(metric));
  }
  const auto num_headlines = std::count_if(metrics.begin(), metrics.end(),
                                           [](const Metric& metric) { return metric.is_headline; });
  if (num_headlines != 1) {
    refuse(source, "number of metrics with \"headline\": true", "1", num_headlines);
  }
  return metrics;
}

MetricFormat::MetricFormat(const Metric& metric, double typical)
    : factor_(metric.is_fraction() ? 100.0 : 1.0),
      decimals_(metric.is_fraction() ? 2 : decimals_for(typical)),
      unit_(metric.is_fraction() ? "%" : metric.unit),
      difference_unit_(metric.is_fraction() ? "points" : metric.unit) {}

std::string MetricFormat::number(double value) const {
  std::string text = fmt::format("{:.{}f}", factor_ * value, decimals_);
  // No minus before a zero.
  if (text.find_first_not_of("-0.") == std::string::npos && text.front() == '-') text.erase(0, 1);
  return text;
}

std::string MetricFormat::signed_number(double value) const {
  const std::string text = number(value);
  const bool is_zero = text.find_first_not_of("0.") == std::string::npos;
  return is_zero || text.front() == '-' ? text : "+" + text;
}

std::string MetricFormat::value(double value) const {
  return unit_.empty() ? number(value) : fmt::format("{} {}", number(value), unit_);
}

std::string MetricFormat::distance(double difference) const {
  const std::string text = number(std::abs(difference));
  return difference_unit_.empty() ? text : fmt::format("{} {}", text, difference_unit_);
}

}  // namespace tamis::runs
