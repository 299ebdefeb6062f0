// A data set whose losses say which samples they came from, and a score that writes down what it
// sees.
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "tamis/libtorch/handler.h"
#include "tamis/registry.h"

namespace tamis::libtorch::test {

// The loss of one sample. No two different batches of distinct samples have the same mean.
inline double code(std::size_t index) {
  return 1.0 + static_cast<double>(index) + 1e-3 * static_cast<double>(index * index % 997);
}

// A batch: the losses of its samples.
struct CodedBatch {
  torch::Tensor losses;  // float64 [B]
};

// Takes a different time for every batch, so that workers overtake each other. Throws for the batch
// that starts with a sample in `broken`.
class CodedDataset final : public torch::data::datasets::BatchDataset<CodedDataset, CodedBatch> {
 public:
  explicit CodedDataset(std::size_t size, std::set<std::size_t> broken = {})
      : size_(size), broken_(std::move(broken)) {}

  CodedBatch get_batch(c10::ArrayRef<std::size_t> indices) override {
    std::this_thread::sleep_for(std::chrono::microseconds(indices[0] * 7919 % 400));
    if (broken_.count(indices[0]) > 0) throw std::runtime_error("broken sample");
    std::vector<double> losses;
    for (const std::size_t index : indices) losses.push_back(code(index));
    return {torch::tensor(losses, torch::kDouble)};
  }
  std::optional<std::size_t> size() const override { return size_; }

 private:
  std::size_t size_;
  std::set<std::size_t> broken_;
};

// What the score was told.
struct Log {
  struct Entry {
    std::vector<std::uint32_t> indices;
    double mean_loss = 0.0;
  };
  std::vector<Entry> entries;

  // Whether an entry's loss is that of its own samples, as far as a float can tell.
  static bool is_right(const Entry& entry) {
    double sum = 0.0;
    for (const std::uint32_t index : entry.indices) sum += code(index);
    return std::abs(sum / static_cast<double>(entry.indices.size()) - entry.mean_loss) < 2e-5;
  }
};

class LoggingScorer final : public Scorer {
 public:
  LoggingScorer(std::size_t num_samples, std::shared_ptr<Log> log)
      : scores_(num_samples, kUnscored), log_(std::move(log)) {}

  Spec spec() const override { return {"logging"}; }
  std::size_t num_samples() const override { return scores_.size(); }
  bool observe(const Observation& observation) override {
    log_->entries.push_back(
        {{observation.indices.begin(), observation.indices.end()}, observation.mean_loss});
    for (const auto index : observation.indices) {
      scores_[index] = static_cast<float>(observation.mean_loss);
    }
    return true;
  }
  std::span<const float> scores(Array<float>&) const override { return scores_; }
  std::vector<ScorerArray> arrays() override {
    return {{"scores", "F32", std::as_writable_bytes(std::span(scores_))}};
  }

 private:
  std::vector<float> scores_;
  std::shared_ptr<Log> log_;
};

// A handler that logs, with a plan that changes from epoch to epoch.
struct LoggedHandler {
  std::shared_ptr<Log> log = std::make_shared<Log>();
  Handler handler;

  explicit LoggedHandler(std::size_t num_samples, std::uint64_t num_epochs = 3,
                         const Spec& policy = {"random-dynamic", {{"prune_ratio", 0.2}}})
      : handler(Pruner({.num_samples = num_samples, .num_epochs = num_epochs, .seed = 7},
                       std::make_unique<LoggingScorer>(num_samples, log), make_policy(policy))) {}
};

}  // namespace tamis::libtorch::test
