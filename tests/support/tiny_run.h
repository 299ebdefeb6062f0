// A run so small that it trains in a fraction of a second.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "training/data/dataset.h"
#include "training/models/model.h"
#include "training/trainer/trainer.h"

namespace tamis::test {

// Random images whose class shows as a bright row.
inline training::Dataset tiny_split(std::int64_t count, std::uint64_t seed) {
  constexpr std::int64_t kSide = 8;
  constexpr std::int64_t kClasses = 4;
  training::Dataset data{.name = "tiny",
                         .images = torch::empty({count, 1, kSide, kSide}, torch::kUInt8),
                         .labels = torch::empty({count}, torch::kInt64),
                         .num_classes = kClasses,
                         .mean = {0.4F},
                         .stddev = {0.3F}};
  std::uint64_t state = seed;
  auto* pixels = data.images.data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t label = i % kClasses;
    data.labels.data_ptr<std::int64_t>()[i] = label;
    for (std::int64_t p = 0; p < kSide * kSide; ++p) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      const bool is_bright = p / kSide == 2 * label;
      *pixels++ = static_cast<std::uint8_t>((state >> 57U) + (is_bright ? 100 : 0));
    }
  }
  return data;
}

inline const training::DataSplits& tiny_data() {
  static const training::DataSplits data{tiny_split(120, 1), tiny_split(40, 2)};
  return data;
}

inline training::RunConfig tiny_config(const std::string& method = "bls-infobatch") {
  training::RunConfig config;
  config.data.name = "tiny";
  config.model.width = 0.25;
  config.training.epochs = 6;
  config.training.batch_size = 16;
  config.training.learning_rate = 0.05;
  config.training.seed = 3;
  config.training.threads = 1;
  config.method = parse_method(method);
  return config;
}

inline training::Trainer start(const training::RunConfig& config,
                               const std::filesystem::path& path) {
  return {config, tiny_data(),
          training::RunFolder::create(path, training::RunFolder::Existing::refuse)};
}

inline training::Trainer resume(const std::filesystem::path& path) {
  auto folder = training::RunFolder::open(path);
  return {training::read_run_config(path), tiny_data(), std::move(folder)};
}

inline training::Outcome run_quietly(training::Trainer& trainer,
                                     const training::StopRequest& stop = {}) {
  training::TrainingObserver silent;
  return trainer.run(silent, stop);
}

// A request that comes when it is asked for the `count`-th time, counted from 0.
inline training::StopRequest stop_after(int count) {
  return [left = count]() mutable { return left-- == 0; };
}

// Every weight and running statistic, bit for bit.
inline std::vector<torch::Tensor> weights_of(training::Trainer& trainer) {
  std::vector<torch::Tensor> weights;
  for (const auto& tensor : trainer.model().parameters()) {
    weights.push_back(tensor.detach().clone());
  }
  for (const auto& tensor : trainer.model().buffers()) weights.push_back(tensor.detach().clone());
  return weights;
}

inline bool same_bits(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (!torch::equal(a[k], b[k])) return false;
  }
  return true;
}

// Metrics without the times, which no two runs share.
inline std::vector<training::EpochMetrics> timeless(std::vector<training::EpochMetrics> metrics) {
  for (auto& epoch : metrics) {
    epoch.train_seconds = epoch.prune_seconds = epoch.test_seconds = epoch.score_seconds = 0.0;
    epoch.processor_share.reset();
    epoch.processor_seconds = 0.0;
  }
  return metrics;
}

}  // namespace tamis::test
