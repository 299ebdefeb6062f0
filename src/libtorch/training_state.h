// TrainingState: what a handler and its samplers share.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "libtorch/batch_tracker.h"
#include "tamis/pruner.h"

namespace tamis::libtorch::detail {

// Not thread-safe, apart from the tracker.
class TrainingState {
 public:
  explicit TrainingState(Pruner pruner) : pruner_(std::move(pruner)) {}

  BatchTracker& tracker() { return tracker_; }
  const Pruner& pruner() {
    settle();
    return pruner_;
  }

  // Sampler: see there. start_pass returns the number of the pass.
  std::uint64_t start_pass(std::optional<LoaderShape> shape);
  void save(const std::function<void(const Pruner&)>& save_pruner);
  void load(const std::function<void(Pruner&)>& load_pruner);

  // Handler: see there.
  torch::Tensor update(const torch::Tensor& loss);
  torch::Tensor update(const torch::Tensor& loss, const BatchOrigin& origin);
  torch::Tensor update(const torch::Tensor& loss, std::span<const SampleIndex> indices);
  void set_epoch(std::uint64_t epoch);
  std::size_t num_batches(std::size_t batch_size, bool drop_last);
  std::size_t missed_updates();
  void record(const std::filesystem::path& folder, const RecorderOptions& options) {
    pruner_.record(folder, options);
  }
  Recorder* recorder() { return pruner_.recorder(); }
  void on_missed_updates(std::function<void(std::size_t, std::uint64_t)> callback) {
    callback_ = std::move(callback);
  }

 private:
  template <typename Index>
  torch::Tensor book(const torch::Tensor& loss, std::span<const Index> indices);
  void report(std::size_t num_missed);
  // Takes over from the tracker what is finished.
  void settle();
  void end_pass();
  bool is_complete() const;

  Pruner pruner_;
  BatchTracker tracker_;
  std::size_t num_missed_ = 0;
  std::function<void(std::size_t, std::uint64_t)> callback_;
};

}  // namespace tamis::libtorch::detail
