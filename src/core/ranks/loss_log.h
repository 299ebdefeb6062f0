// LossLog: the losses of one rank since the last exchange, one number per batch, and the norms of
// its outputs' gradients where they are needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tamis/scorer.h"

namespace tamis::detail {

// Which samples a loss belongs to is said by positions in the rank's plan, which every other rank
// can work out; indices are written down only where the caller departs from the plan.
class LossLog {
 public:
  // The samples at [begin, begin + count) of the rank's plan: their mean loss, or one for each, and
  // no norms, or one for each.
  void add(std::size_t begin, std::size_t count, std::span<const float> losses,
           std::span<const float> norms);
  // The same for other samples, while the rank is at `begin`.
  void add_other(std::size_t begin, std::span<const std::uint32_t> indices,
                 std::span<const float> losses, std::span<const float> norms);

  bool empty() const { return runs_.empty(); }
  // Everything so far as bytes for LossReader; the log is empty then. 4 bytes per batch (per sample
  // with one loss each), 4 per norm and 16 per run of equally large batches.
  std::vector<std::byte> take();

 private:
  friend class LossReader;

  // What is written down of each batch besides its mean loss.
  struct Contents {
    bool indices = false;  // it departs from the plan
    bool losses = false;   // one per sample instead of the mean
    bool norms = false;
    friend bool operator==(const Contents&, const Contents&) = default;
  };
  // Equally large batches, one after the other; one alone if it departs from the plan.
  struct Run {
    std::uint64_t begin = 0;
    std::uint32_t batch_size = 0;
    std::uint32_t num_batches : 29 = 0;
    std::uint32_t has_indices : 1 = 0;
    std::uint32_t has_losses : 1 = 0;
    std::uint32_t has_norms : 1 = 0;

    Contents contents() const { return {has_indices != 0, has_losses != 0, has_norms != 0}; }
    // Of one batch.
    std::size_t num_indices() const { return has_indices != 0 ? batch_size : 0; }
    std::size_t num_losses() const { return has_losses != 0 ? batch_size : 1; }
    std::size_t num_norms() const { return has_norms != 0 ? batch_size : 0; }
    // Of all: losses and norms.
    std::size_t num_floats() const { return num_batches * (num_losses() + num_norms()); }
  };
  static_assert(sizeof(Run) == 16);

  void append(std::size_t begin, std::size_t count, Contents contents,
              std::span<const float> losses, std::span<const float> norms);

  std::vector<Run> runs_;
  std::vector<std::uint32_t> indices_;
  std::vector<float> floats_;  // of every batch its losses and then its norms
};

// The bytes of a LossLog of this many samples in batches, none of which departs from the plan: for
// predictions.
std::uint64_t loss_log_bytes(std::uint64_t num_samples, std::uint64_t batch_size, LossKind kind);

// Reads what LossLog::take() wrote, batch by batch.
class LossReader {
 public:
  struct Batch {
    std::size_t begin = 0;
    std::size_t count = 0;
    std::span<const std::uint32_t> indices;  // empty: the samples of the plan
    std::span<const float> losses;           // one, or one per sample
    std::span<const float> norms;            // none, or one per sample
  };

  // Throws std::runtime_error if the bytes are not a log.
  explicit LossReader(std::span<const std::byte> bytes);

  bool done() const { return run_ == log_.runs_.size(); }
  // Requires: not done().
  Batch batch() const;
  void next();

 private:
  LossLog log_;
  std::size_t run_ = 0;
  std::size_t batch_ = 0;  // in the run
  std::size_t index_ = 0;  // first of the batch
  std::size_t float_ = 0;  // first of the batch
};

}  // namespace tamis::detail
