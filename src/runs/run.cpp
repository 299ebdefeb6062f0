#include "runs/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>

#include "runs/seal.h"

namespace tamis::runs {

namespace {

namespace fs = std::filesystem;

constexpr SealedFormat kSettingsFormat = {
    .name = kRunFormat,
    .newest = kRunVersion,
    .first_sealed = 3,
    .cure =
        "whoever changed it removes the member \"crc32c\" from config.json and from every line "
        "of metrics.jsonl, and sets format_version to 2"};

// Version 1: the method is a name, its parts are in "pruning", seed and epochs in "training", and
// the metrics go without saying.
Json upgrade(const Json& old, const std::string& source) {
  const Fields fields(old, source);
  const Fields training = fields.object("training");
  Json config = old;
  config["format"] = kRunFormat;
  config["method"] = {{"name", fields.text("method")}};
  if (fields.find("pruning") != nullptr) {
    config["method"].update(fields.object("pruning").json());
    config["method"].erase("seed");
  }
  config.erase("pruning");
  config["seed"] = training.seed("seed");
  config["epochs"] = training.whole("epochs", 1);
  config["training"].erase("seed");
  config["training"].erase("epochs");
  config["metrics"] = Json::array();
  for (const Metric& metric : classification_metrics()) {
    config["metrics"].push_back(to_json(metric));
  }
  return config;
}

// Lines that are complete. All have a checksum or none, so that damage of its name shows.
std::vector<EpochMetrics> read_epochs(const fs::path& path, const RunData& run, bool is_sealed) {
  std::vector<EpochMetrics> epochs;
  if (!fs::exists(path)) return epochs;  // Not one epoch is done yet.
  const std::string text = read_text(path.native());
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string source = fmt::format("{}: line {}", path.native(), epochs.size() + 1);
    if (epochs.size() == run.num_epochs) {
      throw std::runtime_error(
          fmt::format("{}: epochs of config.json is {}, got one more", source, run.num_epochs));
    }
    const SealedText line =
        parse_sealed_json(text.substr(begin, end - begin), source, kSettingsFormat.cure);
    if (is_sealed && !line.is_sealed) refuse_without_seal(source, kSettingsFormat.cure);
    if (!is_sealed && line.is_sealed && !epochs.empty()) {
      refuse_without_seal(fmt::format("{}: line {}", path.native(), epochs.size()),
                          kSettingsFormat.cure);
    }
    is_sealed = line.is_sealed;
    const EpochMetrics epoch = epoch_from_json(line.json, run.metrics, source);
    if (epoch.epoch != epochs.size()) {
      refuse(source, "epoch", fmt::format("{}, the one after the line before", epochs.size()),
             epoch.epoch);
    }
    if (epoch.pruned > run.num_train) {
      refuse(source, "pruned",
             fmt::format("at most data.num_train of config.json ({})", run.num_train),
             epoch.pruned);
    }
    epochs.push_back(epoch);
  }
  if (epochs.size() == run.num_epochs && !std::isfinite(epochs.back().value(run.headline()))) {
    throw std::runtime_error(fmt::format(
        "{}: line {}: values: {} must be a finite number after the last epoch, for it is the "
        "headline",
        path.native(), epochs.size(), run.headline().name));
  }
  return epochs;
}

// In the form of the newest version, with the version that it had.
SealedDocument read_settings(const fs::path& folder) {
  const fs::path path = folder / kConfigFile;
  SealedDocument settings = read_sealed_json(path, kSettingsFormat);
  if (settings.version == 1) settings.json = upgrade(settings.json, path.native());
  settings.json["format_version"] = kRunVersion;
  return settings;
}

}  // namespace

bool is_run(const fs::path& folder) { return fs::is_regular_file(folder / kConfigFile); }

Json read_config(const fs::path& folder) { return read_settings(folder).json; }

RunData read_run(const fs::path& folder) {
  const std::string source = (folder / kConfigFile).native();
  SealedDocument settings = read_settings(folder);
  RunData run{.folder = folder, .config = std::move(settings.json), .name = {}, .method = {}};
  const Fields fields(run.config, source);
  run.method = fields.object("method").text("name");
  run.name = fields.find("name") != nullptr ? fields.text("name") : run.method;
  const Fields data = fields.object("data");
  data.text("name");
  run.num_train = data.whole("num_train", 1);
  if (fields.find("model") != nullptr) fields.object("model").text("name");
  run.num_epochs = fields.whole("epochs", 1);
  run.num_full_epochs = run.num_epochs;
  if (const Fields method = fields.object("method"); method.find("full_epochs") != nullptr) {
    run.num_full_epochs = method.whole("full_epochs", run.num_epochs);
  }
  run.seed = fields.seed("seed");
  run.metrics = metrics_from_json(run.config, source);
  run.epochs =
      read_epochs(folder / kMetricsFile, run, settings.version >= kSettingsFormat.first_sealed);
  return run;
}

RunResult summarize_run(const RunData& run) {
  if (run.epochs.empty()) throw std::invalid_argument("a run without epochs has no result");
  RunResult result{.value = run.epochs.back().value(run.headline()), .processor_seconds = 0.0};
  const auto num_train = static_cast<double>(run.num_train);
  // Epochs that the run leaves out altogether, of those it has come to.
  const double scale = static_cast<double>(std::max(run.num_full_epochs, run.num_epochs)) /
                       static_cast<double>(run.num_epochs);
  const double num_epochs = static_cast<double>(run.epochs.size()) * scale;
  double pruned = num_train * (num_epochs - static_cast<double>(run.epochs.size()));
  double share_seconds = 0.0;
  bool knows_share = true;
  for (const EpochMetrics& epoch : run.epochs) {
    pruned += static_cast<double>(epoch.pruned);
    result.train_seconds += epoch.train_seconds;
    result.prune_seconds += epoch.prune_seconds;
    result.score_seconds += epoch.score_seconds;
    knows_share = knows_share && epoch.processor_share.has_value();
    share_seconds += epoch.processor_share.value_or(0.0) * epoch.train_seconds;
    if (!epoch.processor_seconds) result.processor_seconds = std::nullopt;
    if (result.processor_seconds) *result.processor_seconds += *epoch.processor_seconds;
  }
  if (knows_share && result.train_seconds > 0.0) {
    result.processor_share = share_seconds / result.train_seconds;
  }
  result.pruned_share = pruned / (num_train * num_epochs);
  return result;
}

std::string describe_task(const Json& config) {
  const auto name_of = [&](const char* group) {
    const Json value = config.value(group, Json::object());
    return value.is_object() ? value.value("name", "") : "";
  };
  const std::string model = name_of("model");
  return model.empty() ? name_of("data") : fmt::format("{}, {}", name_of("data"), model);
}

}  // namespace tamis::runs
