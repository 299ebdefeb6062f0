#include "training/trainer/run_config.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>

#include "base/check.h"
#include "runs/gallery.h"
#include "runs/run.h"
#include "runs/spec_json.h"

namespace tamis::training {

namespace {

using detail::concat;
using detail::require;

template <typename Kind>
std::string_view name_of(Kind kind, std::span<const std::string_view> names) {
  return names[static_cast<std::size_t>(kind)];
}

template <typename Kind>
Kind kind_of(const std::string& name, std::span<const std::string_view> names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw std::invalid_argument(concat("unknown name ", name));
  return static_cast<Kind>(found - names.begin());
}

Json data_to_json(const DataConfig& data) {
  return {{"name", data.name},
          {"data_dir", data.data_dir.string()},
          {"limit", data.limit},
          {"test_limit", data.test_limit},
          {"label_noise", data.label_noise},
          {"imbalance", data.imbalance},
          {"copies", data.copies}};
}

DataConfig data_from_json(const Json& json) {
  return {.name = json.at("name").get<std::string>(),
          .data_dir = json.at("data_dir").get<std::string>(),
          .limit = json.at("limit").get<std::uint64_t>(),
          .test_limit = json.at("test_limit").get<std::uint64_t>(),
          .label_noise = json.value("label_noise", 0.0),
          .imbalance = json.value("imbalance", 1.0),
          .copies = json.value("copies", 0.0)};
}

Json training_to_json(const TrainingConfig& training) {
  return {{"epochs", training.epochs},
          {"batch_size", training.batch_size},
          {"optimizer", name_of(training.optimizer, kOptimizerNames)},
          {"learning_rate", training.learning_rate},
          {"schedule", name_of(training.schedule, kScheduleNames)},
          {"warmup", training.warmup},
          {"momentum", training.momentum},
          {"weight_decay", training.weight_decay},
          {"label_smoothing", training.label_smoothing},
          {"augment", name_of(training.augment, kAugmentNames)},
          {"test_flip", training.test_flip},
          {"seed", training.seed},
          {"threads", training.threads},
          {"precision", name_of(training.precision, kPrecisionNames)},
          {"channels_last", training.channels_last}};
}

TrainingConfig training_from_json(const Json& json) {
  return {
      .epochs = json.at("epochs").get<std::uint64_t>(),
      .batch_size = json.at("batch_size").get<std::uint64_t>(),
      .optimizer = kind_of<OptimizerKind>(json.at("optimizer").get<std::string>(), kOptimizerNames),
      .learning_rate = json.at("learning_rate").get<double>(),
      .schedule = kind_of<ScheduleKind>(json.at("schedule").get<std::string>(), kScheduleNames),
      .warmup = json.at("warmup").get<double>(),
      .momentum = json.at("momentum").get<double>(),
      .weight_decay = json.at("weight_decay").get<double>(),
      .label_smoothing = json.at("label_smoothing").get<double>(),
      .augment = kind_of<AugmentKind>(json.at("augment").get<std::string>(), kAugmentNames),
      .test_flip = json.value("test_flip", false),
      .seed = json.at("seed").get<std::uint64_t>(),
      .threads = json.at("threads").get<std::uint64_t>(),
      .precision = kind_of<Precision>(json.value("precision", "float32"), kPrecisionNames),
      .channels_last = json.value("channels_last", true)};
}

ModelConfig model_from_json(const Json& json) {
  return {.name = json.at("name").get<std::string>(), .width = json.at("width").get<double>()};
}

// 0 if it has no gallery.
std::uint64_t pictures_from_json(const Json& json) {
  return json.contains("gallery") ? json.at("gallery").at("pictures").get<std::uint64_t>() : 0;
}

// Whatever is wrong with the JSON, the message says in which file.
template <typename Read>
auto reading(const std::string& source, Read read) {
  try {
    auto result = read();
    return result;
  } catch (const Json::exception& error) {
    throw std::runtime_error(concat(source, ": not as tamis writes it: ", error.what()));
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(concat(source, ": ", error.what()));
  }
}

}  // namespace

void choose_optimizer(TrainingConfig& config, OptimizerKind optimizer) {
  const bool adamw = optimizer == OptimizerKind::adamw;
  config.optimizer = optimizer;
  config.learning_rate = adamw ? 0.002 : 0.1;
  config.weight_decay = adamw ? 0.01 : 5e-4;
}

void choose_schedule(TrainingConfig& config, ScheduleKind schedule) {
  config.schedule = schedule;
  config.warmup = schedule == ScheduleKind::one_cycle ? 0.3 : 0.05;
}

std::string_view precision_name(const TrainingConfig& config) {
  return name_of(config.precision, kPrecisionNames);
}

void validate(const RunConfig& config) {
  const TrainingConfig& t = config.training;
  const auto in = [](double value, double low, double high) {
    return value >= low && value <= high;
  };
  require(t.epochs >= 1 && t.epochs <= 1'000'000, "training", "epochs", "in [1, 1e6]", t.epochs);
  require(t.batch_size >= 1 && t.batch_size <= 1'000'000, "training", "batch_size", "in [1, 1e6]",
          t.batch_size);
  require(t.learning_rate > 0.0 && t.learning_rate <= 1e6, "training", "learning_rate",
          "in (0, 1e6]", t.learning_rate);
  require(in(t.warmup, 0.0, 1.0), "training", "warmup", "in [0, 1]", t.warmup);
  require(t.momentum >= 0.0 && t.momentum < 1.0, "training", "momentum", "in [0, 1)", t.momentum);
  require(in(t.weight_decay, 0.0, 1e6), "training", "weight_decay", "in [0, 1e6]", t.weight_decay);
  require(t.label_smoothing >= 0.0 && t.label_smoothing < 1.0, "training", "label_smoothing",
          "in [0, 1)", t.label_smoothing);
  require(t.threads >= 1 && t.threads <= 1024, "training", "threads", "in [1, 1024]", t.threads);
  require(in(config.data.label_noise, 0.0, 1.0), "data", "label_noise", "in [0, 1]",
          config.data.label_noise);
  require(config.data.imbalance > 0.0 && config.data.imbalance <= 1.0, "data", "imbalance",
          "in (0, 1]", config.data.imbalance);
  require(config.num_pictures <= runs::kMostPictures, "gallery", "pictures",
          concat("at most ", runs::kMostPictures), config.num_pictures);
  require(config.data.copies >= 0.0 && config.data.copies < 1.0, "data", "copies", "in [0, 1)",
          config.data.copies);
  require(config.model.width > 0.0 && config.model.width <= 16.0, "model", "width", "in (0, 16]",
          config.model.width);
}

Json to_json(const Method& method) {
  Json json = {{"score", runs::spec_to_json(method.score)},
               {"policy", runs::spec_to_json(method.policy)},
               {"delta", method.delta},
               {"homogeneous", method.homogeneous},
               {"min_per_class", method.min_per_class},
               {"target_prune", Json()}};
  if (method.target_prune) json["target_prune"] = *method.target_prune;
  return json;
}

Json to_json(const RunConfig& config, const RunFacts& facts) {
  Json data = data_to_json(config.data);
  data["num_train"] = facts.num_train;
  data["num_test"] = facts.num_test;
  data["num_classes"] = facts.num_classes;
  Json method = {{"name", config.method.name}};
  method.update(to_json(config.method));
  if (config.full_epochs > 0) method["full_epochs"] = config.full_epochs;
  Json training = training_to_json(config.training);
  for (const char* key : {"epochs", "seed"}) training.erase(key);
  Json metrics = Json::array();
  for (const runs::Metric& metric : runs::classification_metrics()) {
    metrics.push_back(runs::to_json(metric));
  }
  Json json = {{"format", runs::kRunFormat},
               {"format_version", runs::kRunVersion},
               {"method", method},
               {"seed", config.training.seed},
               {"epochs", config.training.epochs},
               {"metrics", metrics},
               {"data", data},
               {"model",
                {{"name", config.model.name},
                 {"width", config.model.width},
                 {"parameters", facts.num_parameters}}},
               {"training", training},
               {"environment", facts.environment}};
  if (config.num_recorded > 0) json["record"] = {{"samples", config.num_recorded}};
  if (config.num_pictures > 0) json["gallery"] = {{"pictures", config.num_pictures}};
  return json;
}

Json shared_to_json(const RunConfig& config) {
  Json training = training_to_json(config.training);
  training.erase("seed");
  return {{"data", data_to_json(config.data)},
          {"model", {{"name", config.model.name}, {"width", config.model.width}}},
          {"training", training},
          {"gallery", {{"pictures", config.num_pictures}}}};
}

Json former_settings() {
  const TrainingConfig training;
  const DataConfig data;
  return {
      {"data",
       {{"label_noise", data.label_noise}, {"imbalance", data.imbalance}, {"copies", data.copies}}},
      {"training",
       {{"precision", name_of(training.precision, kPrecisionNames)},
        {"channels_last", training.channels_last},
        {"test_flip", training.test_flip}}},
      {"gallery", {{"pictures", 0}}}};
}

Method method_from_json(const Json& json, const std::string& name, const std::string& source) {
  return reading(source, [&] {
    Method method{.name = name,
                  .score = runs::spec_from_json(json.at("score"), source),
                  .policy = runs::spec_from_json(json.at("policy"), source),
                  .delta = json.at("delta").get<double>(),
                  .homogeneous = json.value("homogeneous", false),
                  .min_per_class = json.value("min_per_class", 0.0)};
    if (const Json target = json.value("target_prune", Json()); !target.is_null()) {
      method.target_prune = target.get<double>();
    }
    return method;
  });
}

RunConfig config_from_json(const Json& json, const std::string& source) {
  return reading(source, [&] {
    Json training = json.at("training");
    training["epochs"] = json.at("epochs");
    training["seed"] = json.at("seed");
    const Json& method = json.at("method");
    RunConfig config{
        .data = data_from_json(json.at("data")),
        .model = model_from_json(json.at("model")),
        .training = training_from_json(training),
        .method = method_from_json(method, method.at("name").get<std::string>(), source),
        .full_epochs = method.value("full_epochs", std::uint64_t{0})};
    if (json.contains("record")) {
      config.num_recorded = json.at("record").at("samples").get<std::uint64_t>();
    }
    config.num_pictures = pictures_from_json(json);
    validate(config);
    return config;
  });
}

RunConfig shared_from_json(const Json& json, const std::string& source) {
  return reading(source, [&] {
    Json training = json.at("training");
    training["seed"] = 0;
    RunConfig config{.data = data_from_json(json.at("data")),
                     .model = model_from_json(json.at("model")),
                     .training = training_from_json(training),
                     .method = {},
                     .num_pictures = pictures_from_json(json)};
    validate(config);
    return config;
  });
}

RunFacts facts_from_json(const Json& json, const std::string& source) {
  return reading(source, [&] {
    const Json& data = json.at("data");
    return RunFacts{.num_train = data.at("num_train").get<std::uint64_t>(),
                    .num_test = data.at("num_test").get<std::uint64_t>(),
                    .num_classes = data.at("num_classes").get<std::int64_t>(),
                    .num_parameters = json.at("model").at("parameters").get<std::int64_t>(),
                    .environment = json.at("environment")};
  });
}

RunConfig read_run_config(const std::filesystem::path& folder) {
  return config_from_json(runs::read_config(folder), (folder / runs::kConfigFile).native());
}

}  // namespace tamis::training
