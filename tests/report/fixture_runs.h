// Made-up run folders for tests of the report. The numbers look like those of a small network on an
// easy data set, come from a seeded generator, and mean nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tamis::test {

struct FixtureRun {
  std::string method = "full";
  // The method's name if empty.
  std::string name = {};
  std::uint64_t seed = 0;
  std::uint64_t epochs = 4;
  // Epochs that are missing at the end.
  std::uint64_t missing_epochs = 0;
  std::uint64_t num_train = 1000;
  // Test accuracy after the last epoch, exactly.
  double accuracy = 0.9;
  // Of every epoch but the first and the last eighth.
  double prune_ratio = 0.0;
  // Sums over all epochs, exactly.
  double train_seconds = 10.0;
  double prune_seconds = 0.01;
  // Merged into config.json (RFC 7396).
  nlohmann::json config = nlohmann::json::object();
};

// Writes config.json and metrics.jsonl.
void write_run(const std::filesystem::path& folder, const FixtureRun& run);

struct FixtureComparison {
  // The first is the baseline.
  std::vector<std::string> methods = {"full", "bls-infobatch"};
  std::vector<std::uint64_t> seeds = {1, 2, 3};
  // accuracies[method][seed].
  std::vector<std::vector<double>> accuracies;
  // For all but the baseline.
  double prune_ratio = 0.3;
  std::uint64_t epochs = 4;
};

// Writes compare.json and a run folder for every method and seed, but no summary.json.
void write_comparison(const std::filesystem::path& folder, const FixtureComparison& comparison);

// A run of `epochs` epochs with a recording of made-up losses, for `tamis analyze`.
void write_recorded_run(const std::filesystem::path& folder, std::uint64_t epochs = 40);

// gallery.json for a run of at least 204 samples, as a program in any language may write it; labels
// and places have the name.
void write_gallery(const std::filesystem::path& folder, const std::string& name = "coat");

// A sweep of alpha over these values with seeds 1 to 3, and full.
void write_sweep(const std::filesystem::path& folder, const std::vector<double>& values);

// A comparison to look at: six methods, three seeds, twenty epochs; one method is clearly worse.
void write_showcase(const std::filesystem::path& folder);

}  // namespace tamis::test
