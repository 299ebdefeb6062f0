#include "program/report/run.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "base/files/posix_io.h"
#include "program/shared/json_input.h"

namespace tamis::program {

namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 53U;

// Members of one object, each checked by its own rule.
class Fields {
 public:
  Fields(const json& object, std::string source) : object_(object), source_(std::move(source)) {}

  Fields object(const char* key) const {
    const json& value = member(object_, key, source_);
    if (!value.is_object()) refuse(source_, key, "an object", value);
    return {value, fmt::format("{}: {}", source_, key)};
  }

  std::string text(const char* key) const {
    const json& value = member(object_, key, source_);
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
      refuse(source_, key, "a text that is not empty", value);
    }
    return value.get<std::string>();
  }

  std::uint64_t whole(const char* key, std::uint64_t min = 0) const {
    const json& value = member(object_, key, source_);
    std::uint64_t number = 0;
    if (!get_whole(value, kMaxCount, number) || number < min) {
      refuse(source_, key, fmt::format("a whole number of at least {}", min), value);
    }
    return number;
  }

  // Any whole number of 64 bits.
  std::uint64_t seed(const char* key) const {
    const json& value = member(object_, key, source_);
    std::uint64_t number = 0;
    if (!value.is_number_unsigned() && !get_whole(value, kMaxCount, number)) {
      refuse(source_, key, "a whole number of at least 0", value);
    }
    return value.get<std::uint64_t>();
  }

  double number(const char* key, double min, double max) const {
    const json& value = member(object_, key, source_);
    if (!value.is_number() || !(value.get<double>() >= min && value.get<double>() <= max)) {
      refuse(source_, key,
             max == kMaxFinite ? fmt::format("a finite number of at least {}", min)
                               : fmt::format("in [{}, {}]", min, max),
             value);
    }
    return value.get<double>();
  }
  double finite(const char* key) const {
    const json& value = member(object_, key, source_);
    if (!value.is_number() || !(std::abs(value.get<double>()) <= kMaxFinite)) {
      refuse(source_, key, "a finite number", value);
    }
    return value.get<double>();
  }
  double seconds(const char* key) const { return number(key, 0.0, kMaxFinite); }
  double fraction(const char* key) const { return number(key, 0.0, 1.0); }

  // A loss that overflowed is no reason to refuse the run: it is what the reader should see.
  double loss(const char* key) const {
    const json& value = member(object_, key, source_);
    float number = 0.0F;
    if (!get_float_or_null(value, number)) refuse(source_, key, "a number or null", value);
    return std::isfinite(number) ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
  }

  const json& json_object() const { return object_; }
  const std::string& source() const { return source_; }

 private:
  // JSON has no infinity; what stands for it in our files lies beyond the range of a float.
  static constexpr double kMaxFinite = std::numeric_limits<float>::max();

  const json& object_;
  std::string source_;
};

ScoreHistogram read_histogram(const Fields& fields) {
  ScoreHistogram histogram;
  histogram.low = fields.finite("low");
  histogram.high = fields.finite("high");
  if (histogram.high < histogram.low) {
    refuse(fields.source(), "high", fmt::format("at least low ({})", histogram.low),
           histogram.high);
  }
  const json& counts = array_member(fields.json_object(), "counts", fields.source());
  if (counts.empty()) refuse(fields.source(), "counts", "an array of at least one count", counts);
  for (const json& value : counts) {
    std::uint64_t count = 0;
    if (!get_whole(value, kMaxCount, count)) {
      refuse(fields.source(), fmt::format("counts[{}]", histogram.counts.size()),
             "a whole number of at least 0", value);
    }
    histogram.counts.push_back(count);
  }
  return histogram;
}

EpochMetrics read_epoch(const Fields& fields, std::uint64_t epoch, std::uint64_t num_train) {
  if (const std::uint64_t found = fields.whole("epoch"); found != epoch) {
    refuse(fields.source(), "epoch", fmt::format("{}, the one after the line before", epoch),
           found);
  }
  EpochMetrics metrics;
  metrics.samples = fields.whole("samples");
  const std::uint64_t pruned = fields.whole("pruned");
  if (metrics.samples > num_train || pruned != num_train - metrics.samples) {
    refuse(fields.source(), "samples + pruned",
           fmt::format("data.num_train of config.json ({})", num_train), metrics.samples + pruned);
  }
  metrics.steps = fields.whole("steps");
  metrics.train_loss = fields.loss("train_loss");
  metrics.train_accuracy = fields.fraction("train_accuracy");
  metrics.test_loss = fields.loss("test_loss");
  metrics.test_accuracy = fields.fraction("test_accuracy");
  metrics.learning_rate = fields.seconds("learning_rate");
  metrics.train_seconds = fields.seconds("train_seconds");
  metrics.prune_seconds = fields.seconds("prune_seconds");
  if (metrics.prune_seconds > metrics.train_seconds) {
    refuse(fields.source(), "prune_seconds",
           fmt::format("at most train_seconds ({})", metrics.train_seconds), metrics.prune_seconds);
  }
  metrics.test_seconds = fields.seconds("test_seconds");
  if (const json& object = fields.json_object();
      object.contains("score_histogram") && !object["score_histogram"].is_null()) {
    metrics.scores = read_histogram(fields.object("score_histogram"));
  }
  return metrics;
}

json parse_line(const std::string& line, const std::string& source) {
  try {
    return json::parse(line);
  } catch (const json::parse_error& error) {
    throw std::runtime_error(fmt::format("{}: not valid JSON at column {}", source, error.byte));
  }
}

std::vector<EpochMetrics> read_metrics(const std::filesystem::path& path, const Run& run) {
  std::vector<EpochMetrics> epochs;
  if (!std::filesystem::exists(path)) return epochs;  // Not one epoch is done yet.
  std::ifstream file(path);
  if (!file) detail::throw_io_error(path, "open", errno);
  std::string line;
  while (std::getline(file, line)) {
    if (file.eof()) break;
    const std::string source = fmt::format("{}: line {}", path.native(), epochs.size() + 1);
    if (epochs.size() == run.num_epochs) {
      throw std::runtime_error(fmt::format("{}: training.epochs of config.json is {}, got one more",
                                           source, run.num_epochs));
    }
    const json document = parse_line(line, source);
    epochs.push_back(read_epoch(Fields(document, source), epochs.size(), run.num_train));
  }
  if (file.bad()) detail::throw_io_error(path, "read", errno);
  return epochs;
}

}  // namespace

double Run::train_seconds() const {
  double sum = 0.0;
  for (const EpochMetrics& epoch : epochs) sum += epoch.train_seconds;
  return sum;
}

double Run::prune_seconds() const {
  double sum = 0.0;
  for (const EpochMetrics& epoch : epochs) sum += epoch.prune_seconds;
  return sum;
}

double Run::pruned_share() const {
  double used = 0.0;
  for (const EpochMetrics& epoch : epochs) used += static_cast<double>(epoch.samples);
  return 1.0 - used / (static_cast<double>(num_train) * static_cast<double>(epochs.size()));
}

void require_format(const json& document, const char* format, const std::string& source) {
  constexpr std::uint64_t kVersion = 1;
  if (const json& value = member(document, "format", source); value != json(format)) {
    refuse(source, "format", fmt::format("\"{}\"", format), value);
  }
  const json& version = member(document, "format_version", source);
  if (version != json(kVersion)) {
    refuse(source, "format_version", fmt::format("{}, the one this program reads", kVersion),
           version);
  }
}

Run read_run(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  Run run;
  run.folder = folder;
  run.config = read_json(path.native());
  require_format(run.config, "tamis-run", path.native());
  const Fields fields(run.config, path.native());
  run.name = fields.text("name");
  run.method = fields.text("method");
  const Fields data = fields.object("data");
  data.text("name");
  run.num_train = data.whole("num_train", 1);
  fields.object("model").text("name");
  const Fields training = fields.object("training");
  run.num_epochs = training.whole("epochs", 1);
  run.seed = training.seed("seed");
  run.epochs = read_metrics(folder / "metrics.jsonl", run);
  if (const std::filesystem::path analysis = folder / "analysis.json";
      std::filesystem::exists(analysis)) {
    run.analysis = read_json(analysis.native());
    require_format(run.analysis, "tamis-analysis", analysis.native());
  }
  return run;
}

}  // namespace tamis::program
