// Recording: what a Recorder wrote, read back step by step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

namespace tamis {

// One training step. Valid during the call that gives it.
struct RecordedStep {
  std::uint64_t step = 0;
  std::uint64_t epoch = 0;
  float mean_loss = 0.0F;
  std::span<const std::uint32_t> indices;
  // The recorded samples of the batch as places in samples(), and their per-sample losses, NaN
  // where they were not known. An index that stands twice in the batch is here twice.
  std::span<const std::uint32_t> places;
  std::span<const float> losses;
  // The norm of the loss's gradient by each output of the batch; empty where the outputs were not
  // watched. In the order of `indices`; those of samples that filled up a rank's batch follow.
  std::span<const float> norms = {};
};

// The losses of all recorded samples after an epoch.
struct TrueLosses {
  std::uint64_t epoch = 0;
  std::uint64_t num_steps = 0;  // taken before they were measured
  std::vector<float> losses;    // in the order of samples()
};

// Reads with the memory of one file at a time, and verifies every checksum. All calls throw
// std::runtime_error with the file's name if one is missing or damaged.
class Recording {
 public:
  // `folder` of a recorder, or of a run that has one named "record" in it.
  explicit Recording(const std::filesystem::path& folder);
  // True if `folder` can be opened.
  static bool exists(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  std::size_t num_samples() const { return num_samples_; }
  // Which norms it has, if any: see Scorer::norm_order.
  int norm_order() const { return norm_order_; }
  // The samples whose per-sample losses were recorded, ascending.
  std::span<const std::uint32_t> samples() const { return samples_; }

  // Gives every step to `visit`, in order.
  void read(const std::function<void(const RecordedStep&)>& visit) const;
  // By epoch; none if the run measured none.
  std::vector<TrueLosses> true_losses() const;

 private:
  std::filesystem::path folder_;
  std::size_t num_samples_ = 0;
  int norm_order_ = 2;
  std::vector<std::uint32_t> samples_;
};

}  // namespace tamis
