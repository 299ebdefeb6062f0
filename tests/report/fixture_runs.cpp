#include "fixture_runs.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <stdexcept>

#include "support/simulated_run.h"

namespace tamis::test {

namespace {

using nlohmann::json;

json config_of(const FixtureRun& run) {
  const bool is_full = run.method == "full";
  const bool is_bls = run.method.starts_with("bls-");
  const bool is_seta = run.method.ends_with("seta");
  const bool is_random = run.method == "random-dynamic";
  json config = {
      {"format", "tamis-run"},
      {"format_version", 2},
      {"name", run.name.empty() ? run.method : run.name},
      {"method",
       {{"name", run.method},
        {"score", {{"name", is_bls ? "batch-loss" : "sample-loss"}, {"options", json::object()}}},
        {"policy",
         {{"name", is_full     ? "none"
                   : is_seta   ? "seta"
                   : is_random ? "random-dynamic"
                               : "infobatch"},
          {"options", json::object()}}},
        {"delta", is_full ? 1.0 : 0.875}}},
      {"seed", run.seed},
      {"epochs", run.epochs},
      {"metrics",
       {{{"name", "test_accuracy"},
         {"unit", "fraction"},
         {"direction", "higher"},
         {"headline", true}},
        {{"name", "train_accuracy"}, {"unit", "fraction"}, {"direction", "higher"}},
        {{"name", "test_loss"}, {"direction", "lower"}},
        {{"name", "train_loss"}, {"direction", "lower"}}}},
      {"data",
       {{"name", "made-up-clothes"},
        {"num_train", run.num_train},
        {"num_test", 10000},
        {"num_classes", 10},
        {"label_noise", 0},
        {"imbalance", 1}}},
      {"model", {{"name", "small-cnn"}, {"width", 1.0}, {"parameters", 105866}}},
      {"training",
       {{"batch_size", 128},
        {"optimizer", "sgd"},
        {"learning_rate", 0.1},
        {"schedule", "one-cycle"},
        {"momentum", 0.9},
        {"weight_decay", 5e-4},
        {"label_smoothing", 0.0},
        {"augment", "none"},
        {"threads", 2}}},
      {"environment",
       {{"tamis", "0.1.0"},
        {"torch", "1.13.0"},
        {"cpu", "A processor that does not exist"},
        {"cores", 2},
        {"date", "2024-03-01T12:00:00Z"},
        {"commit", nullptr}}}};
  if (is_bls) config["method"]["score"]["options"] = {{"alpha", 0.7}};
  if (!is_full) {
    config["method"]["policy"]["options"] = {{"prune_ratio", is_seta ? 0.1 : 0.5}};
  }
  config.merge_patch(run.config);
  return config;
}

// Scores spread around a mean that falls, the scores of a batch's mean much less than a sample's.
json histogram_of(std::mt19937_64& random, double mean, double spread, std::uint64_t count) {
  constexpr std::size_t kBins = 32;
  std::lognormal_distribution<double> draw(std::log(mean), spread);
  std::vector<double> scores(std::min<std::uint64_t>(count, 4000));
  for (double& score : scores) score = draw(random);
  const auto [low, high] = std::minmax_element(scores.begin(), scores.end());
  std::vector<std::uint64_t> counts(kBins);
  for (const double score : scores) {
    const double place = (score - *low) / (*high - *low) * static_cast<double>(kBins);
    ++counts[std::min(static_cast<std::size_t>(place), kBins - 1)];
  }
  return {{"low", *low}, {"high", *high}, {"counts", counts}};
}

json epoch_of(const FixtureRun& run, std::uint64_t epoch, std::mt19937_64& random) {
  const double share = static_cast<double>(epoch + 1) / static_cast<double>(run.epochs);
  const double noise = std::normal_distribution<double>(0.0, 0.004 * (1.05 - share))(random);
  const double rise = 1.0 - std::exp(-5.0 * share);
  const double accuracy = epoch + 1 == run.epochs
                              ? run.accuracy
                              : std::clamp(run.accuracy * (0.82 + 0.18 * rise) + noise, 0.0, 1.0);
  const double loss = 0.18 + 0.6 * std::exp(-4.0 * share) + std::abs(noise);
  const bool is_pruned =
      epoch > 0 && static_cast<double>(epoch) + 1.0 <= 0.875 * static_cast<double>(run.epochs);
  const double wobble = is_pruned ? std::uniform_real_distribution<double>(0.9, 1.1)(random) : 0.0;
  const auto pruned =
      static_cast<std::uint64_t>(run.prune_ratio * wobble * static_cast<double>(run.num_train));
  const std::uint64_t samples = run.num_train - pruned;
  const auto per_epoch = [&](double total) { return total / static_cast<double>(run.epochs); };
  json line = {{"epoch", epoch},
               {"samples", samples},
               {"pruned", pruned},
               {"steps", (samples + 127) / 128},
               {"values",
                {{"train_loss", loss * (1.0 + 0.3 * run.prune_ratio)},
                 {"train_accuracy", std::clamp(accuracy + 0.02 * share, 0.0, 1.0)},
                 {"test_loss", loss + 0.05},
                 {"test_accuracy", accuracy}}},
               {"learning_rate", 0.1 * (1.0 - share)},
               {"train_seconds", per_epoch(run.train_seconds)},
               {"prune_seconds", per_epoch(run.prune_seconds)},
               {"test_seconds", 0.5}};
  if (run.method != "full" && run.method != "random-dynamic") {
    const double spread = run.method.starts_with("bls-") ? 0.12 : 0.9;
    line["score_histogram"] = histogram_of(random, loss, spread, run.num_train);
  }
  return line;
}

std::ofstream create(const std::filesystem::path& path) {
  std::ofstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot create " + path.string());
  return file;
}

}  // namespace

void write_run(const std::filesystem::path& folder, const FixtureRun& run) {
  std::filesystem::create_directories(folder);
  create(folder / "config.json") << config_of(run).dump(2) << '\n';
  std::seed_seq seeds(run.method.begin(), run.method.end());
  std::mt19937_64 random(seeds);
  random.discard(1000 * run.seed);
  std::ofstream metrics = create(folder / "metrics.jsonl");
  for (std::uint64_t epoch = 0; epoch + run.missing_epochs < run.epochs; ++epoch) {
    metrics << epoch_of(run, epoch, random).dump() << '\n';
  }
}

void write_comparison(const std::filesystem::path& folder, const FixtureComparison& comparison) {
  std::filesystem::create_directories(folder);
  create(folder / "compare.json") << json{{"format", "tamis-compare"},
                                          {"format_version", 1},
                                          {"methods", comparison.methods},
                                          {"seeds", comparison.seeds},
                                          {"baseline", comparison.methods.front()}}
                                         .dump(2)
                                  << '\n';
  for (std::size_t m = 0; m < comparison.methods.size(); ++m) {
    for (std::size_t s = 0; s < comparison.seeds.size(); ++s) {
      FixtureRun run;
      run.method = comparison.methods[m];
      run.seed = comparison.seeds[s];
      run.epochs = comparison.epochs;
      run.accuracy = comparison.accuracies[m][s];
      run.prune_ratio = m == 0 ? 0.0 : comparison.prune_ratio;
      run.train_seconds = m == 0 ? 10.0 : 10.0 * (1.0 - 0.8 * comparison.prune_ratio);
      write_run(folder / (run.method + "-seed" + std::to_string(run.seed)), run);
    }
  }
}

void write_recorded_run(const std::filesystem::path& folder, std::uint64_t epochs) {
  constexpr std::size_t kSamples = 640;
  write_run(folder, {.method = "bls-infobatch", .epochs = epochs, .num_train = kSamples});
  Pruner pruner({.num_samples = kSamples, .num_epochs = epochs, .score = Spec{"batch-loss"}});
  pruner.record(folder / "record", {.num_recorded = 200});
  simulate_with_losses(pruner, epochs, 16);
  pruner.save(folder / "pruner.safetensors");
}

void write_gallery(const std::filesystem::path& folder, const std::string& name) {
  // Eight by eight grey pixels.
  constexpr const char* kPicture =
      "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAAKklEQVR42mNgEFAwcAhIKIDRDQxQegIDlF7AAKU3"
      "MEDpAwxQ+gIDlH4AAB51HAGfRI9tAAAAAElFTkSuQmCC";
  json samples = json::array();
  for (int number = 0; number < 30; ++number) {
    const double loss = 0.1 * number;
    json sample = {{"sample", 7 * number},    {"place", name + std::to_string(7 * number)},
                   {"label", name},           {"predicted", number < 20 ? name : "something else"},
                   {"forgotten", number % 7}, {"scores", {nullptr, loss, 0.8 * loss, 0.5 * loss}},
                   {"picture", kPicture}};
    if (number == 29) sample["true_label"] = "the truth";
    samples.push_back(std::move(sample));
  }
  json groups = json::object();
  for (int k = 0; k < 12; ++k) {
    groups["hardest"].push_back(7 * (29 - k));
    groups["easiest"].push_back(7 * k);
    if (k < 4) groups["forgotten"].push_back(7 * (6 + 7 * k));
  }
  create(folder / "gallery.json") << json{{"format", "tamis-gallery"}, {"format_version", 1},
                                          {"score", "loss"},           {"epochs", {0, 1, 2, 3}},
                                          {"num_never_learned", 1},    {"num_never_forgotten", 431},
                                          {"groups", groups},          {"samples", samples}}
                                         .dump()
                                  << '\n';
}

void write_sweep(const std::filesystem::path& folder, const std::vector<double>& values) {
  FixtureComparison comparison;
  comparison.methods = {"full"};
  comparison.accuracies = {{0.91, 0.912, 0.909}};
  for (const double value : values) {
    comparison.methods.push_back("bls-infobatch:alpha=" + json(value).dump());
    comparison.accuracies.push_back({0.90 + 0.01 * value, 0.905, 0.91 - 0.01 * value});
  }
  write_comparison(folder, comparison);
  create(folder / "sweep.json") << json{{"format", "tamis-sweep"},
                                        {"format_version", 1},
                                        {"method", "bls-infobatch"},
                                        {"option", "alpha"},
                                        {"values", values}}
                                       .dump(2)
                                << '\n';
}

void write_showcase(const std::filesystem::path& folder) {
  struct Method {
    const char* name;
    double accuracy;
    double prune_ratio;
  };
  const std::vector<Method> methods = {
      {"full", 0.9152, 0.0},  {"random-dynamic", 0.9089, 0.40}, {"infobatch", 0.9148, 0.37},
      {"seta", 0.9141, 0.43}, {"bls-infobatch", 0.9150, 0.36},  {"bls-seta", 0.9143, 0.42},
  };
  FixtureComparison comparison;
  comparison.methods.clear();
  for (const Method& method : methods) comparison.methods.emplace_back(method.name);
  comparison.accuracies.assign(methods.size(), std::vector<double>(3, 0.9));
  write_comparison(folder, comparison);
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(0.0, 0.0011);
  std::vector<double> seed_effects(comparison.seeds.size());
  for (double& effect : seed_effects) effect = noise(random);
  for (const Method& method : methods) {
    for (std::size_t s = 0; s < comparison.seeds.size(); ++s) {
      FixtureRun run;
      run.method = method.name;
      run.seed = comparison.seeds[s];
      run.epochs = 20;
      run.num_train = 60000;
      run.accuracy = method.accuracy + seed_effects[s] + 0.6 * noise(random);
      run.prune_ratio = method.prune_ratio;
      run.train_seconds = 61.0 * (1.0 - 0.78 * method.prune_ratio) * (1.0 + 8.0 * noise(random));
      run.prune_seconds = method.prune_ratio == 0.0 ? 0.004 : 0.06;
      write_run(folder / (run.method + "-seed" + std::to_string(run.seed)), run);
    }
  }
}

}  // namespace tamis::test
