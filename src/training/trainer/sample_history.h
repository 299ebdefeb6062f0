// SampleHistory: what a run saw of every training sample, for its gallery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "tamis/types.h"
#include "training/trainer/forgetting_events.h"

namespace tamis::training {

// True for `count` of the epochs, at even distances, the last one among them; for all if there are
// no more.
bool is_chosen_epoch(std::uint64_t epoch, std::uint64_t num_epochs, std::uint64_t count);

// The loss of every sample at its last visit, kept after up to 32 epochs, and how often it was
// forgotten. About 140 bytes per sample; a visit costs a few nanoseconds.
class SampleHistory {
 public:
  SampleHistory(std::size_t num_samples, std::uint64_t num_epochs);

  // One batch: the loss of each sample, and whether the model was right.
  void visit(std::span<const SampleIndex> samples, std::span<const float> losses,
             std::span<const bool> is_right);
  void end_epoch(std::uint64_t epoch);

  std::size_t num_samples() const { return last_losses_.size(); }
  // The epochs after which losses were kept, and the losses, NaN before a sample's first visit.
  const std::vector<std::uint64_t>& epochs() const { return epochs_; }
  std::span<const float> losses(std::size_t snapshot) const;

  const ForgettingEvents& forgetting() const { return forgetting_; }

  // As a part of a checkpoint after `step` steps. Complete or not at all. Throws
  // std::runtime_error.
  void save(const std::filesystem::path& path, std::uint64_t step) const;
  // Verified before anything changes. Throws std::runtime_error if the file is damaged, of another
  // step, or of another run: `epochs_done` epochs are finished.
  void load(const std::filesystem::path& path, std::uint64_t step, std::uint64_t epochs_done);

 private:
  std::uint64_t num_epochs_;
  std::vector<float> last_losses_;
  ForgettingEvents forgetting_;
  std::vector<std::uint64_t> epochs_;
  std::vector<float> snapshots_;  // [epochs_, samples]
};

}  // namespace tamis::training
