// Metric: one number that a run measures after its epochs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runs/json.h"

namespace tamis::runs {

enum class Direction { higher, lower };  // what is better

struct Metric {
  std::string name;
  // "fraction": values in [0, 1] that people read in per cent. Any other text stands behind the
  // number.
  std::string unit = {};
  Direction direction = Direction::higher;
  bool is_headline = false;  // what runs are compared by

  bool is_fraction() const;
  bool is_better(double difference) const {
    return direction == Direction::higher ? difference > 0.0 : difference < 0.0;
  }
  // "test accuracy" for test_accuracy.
  std::string title() const;

  friend bool operator==(const Metric&, const Metric&) = default;
};

// What `tamis train` measures; the accuracy on the test samples is the headline.
const std::vector<Metric>& classification_metrics();

// Requires: one of them is the headline.
const Metric& headline_of(const std::vector<Metric>& metrics);

Json to_json(const Metric& metric);
// From "metrics" of config.json. Throws std::runtime_error unless every metric has a name of its
// own and one of them is the headline.
std::vector<Metric> metrics_from_json(const Json& config, const std::string& source);

// Numbers of one metric as people read them.
class MetricFormat {
 public:
  // Fractions in per cent with two decimals, others with the decimals that give `typical` four
  // digits.
  MetricFormat(const Metric& metric, double typical);

  std::string number(double value) const;         // "91.52"
  std::string signed_number(double value) const;  // "+0.61"
  std::string value(double value) const;          // "91.52 %"
  // "0.61 points": without its sign.
  std::string distance(double difference) const;
  // "%", "points": the unit of values and the unit of differences; empty if there is none.
  const std::string& unit() const { return unit_; }
  const std::string& difference_unit() const { return difference_unit_; }

 private:
  double factor_;
  int decimals_;
  std::string unit_;
  std::string difference_unit_;
};

}  // namespace tamis::runs
