// LossLog: the losses of one rank since the last exchange, one number per batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tamis::detail {

// Which samples a loss belongs to is said by positions in the rank's plan, which every other rank
// can work out; indices are written down only where the caller departs from the plan.
class LossLog {
 public:
  // The mean loss, or the losses, of the samples at [begin, begin + count) of the rank's plan.
  void add(std::size_t begin, std::size_t count, float mean_loss);
  void add(std::size_t begin, std::span<const float> losses);
  // Of other samples, while the rank is at `begin`: one loss, or one for each.
  void add_other(std::size_t begin, std::span<const std::uint32_t> indices,
                 std::span<const float> losses);

  bool empty() const { return runs_.empty(); }
  // Everything so far as bytes for LossReader; the log is empty then. 4 bytes per batch (per sample
  // with one loss each) and 16 per run of equally large batches.
  std::vector<std::byte> take();

 private:
  friend class LossReader;

  enum class Kind : std::uint32_t { mean, samples, other_mean, other_samples };
  // Equally large batches, one after the other.
  struct Run {
    std::uint64_t begin = 0;
    std::uint32_t batch_size = 0;
    std::uint32_t num_batches : 30 = 0;
    std::uint32_t kind : 2 = 0;
  };
  static_assert(sizeof(Run) == 16);
  static std::size_t num_indices(const Run& run);
  static std::size_t num_losses(const Run& run);

  void append(std::size_t begin, std::size_t count, Kind kind);

  std::vector<Run> runs_;
  std::vector<std::uint32_t> indices_;
  std::vector<float> losses_;
};

// The bytes of a LossLog of this many samples in batches, none of which departs from the plan: for
// predictions.
std::uint64_t loss_log_bytes(std::uint64_t num_samples, std::uint64_t batch_size,
                             bool has_sample_losses);

// Reads what LossLog::take() wrote, batch by batch.
class LossReader {
 public:
  struct Batch {
    std::size_t begin = 0;
    std::size_t count = 0;
    std::span<const std::uint32_t> indices;  // empty: the samples of the plan
    std::span<const float> losses;           // one, or one per sample
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
  std::size_t loss_ = 0;   // first of the batch
};

}  // namespace tamis::detail
