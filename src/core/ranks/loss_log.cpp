#include "core/ranks/loss_log.h"

#include <cstring>
#include <stdexcept>

namespace tamis::detail {

namespace {

constexpr std::uint32_t kMaxBatches = (1U << 30U) - 1;

template <typename T>
void write(std::span<const T> values, std::vector<std::byte>& out) {
  const auto bytes = std::as_bytes(values);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

// Takes `count` values from the front of `bytes`.
template <typename T>
void read(std::size_t count, std::span<const std::byte>& bytes, std::vector<T>& out) {
  if (bytes.size() / sizeof(T) < count) {
    throw std::runtime_error("Pruner: the losses of another rank are cut off");
  }
  if (count == 0) return;  // memcpy must not see the null pointer of an empty vector
  const std::size_t old_size = out.size();
  out.resize(old_size + count);
  std::memcpy(out.data() + old_size, bytes.data(), count * sizeof(T));
  bytes = bytes.subspan(count * sizeof(T));
}

}  // namespace

std::size_t LossLog::num_indices(const Run& run) {
  const auto kind = static_cast<Kind>(run.kind);
  return kind == Kind::other_mean || kind == Kind::other_samples ? run.batch_size : 0;
}

std::size_t LossLog::num_losses(const Run& run) {
  const auto kind = static_cast<Kind>(run.kind);
  const bool is_mean = kind == Kind::mean || kind == Kind::other_mean;
  return std::size_t{run.num_batches} * (is_mean ? 1 : run.batch_size);
}

void LossLog::append(std::size_t begin, std::size_t count, Kind kind) {
  const bool is_planned = kind == Kind::mean || kind == Kind::samples;
  if (is_planned && !runs_.empty()) {
    Run& last = runs_.back();
    const std::uint64_t end = last.begin + std::uint64_t{last.batch_size} * last.num_batches;
    if (last.kind == static_cast<std::uint32_t>(kind) && last.batch_size == count && begin == end &&
        last.num_batches < kMaxBatches) {
      last.num_batches = (last.num_batches + 1) & kMaxBatches;
      return;
    }
  }
  runs_.push_back({.begin = begin,
                   .batch_size = static_cast<std::uint32_t>(count),
                   .num_batches = 1,
                   .kind = static_cast<std::uint32_t>(kind) & 3U});
}

void LossLog::add(std::size_t begin, std::size_t count, float mean_loss) {
  append(begin, count, Kind::mean);
  losses_.push_back(mean_loss);
}

void LossLog::add(std::size_t begin, std::span<const float> losses) {
  // A batch of one sample has one loss either way.
  append(begin, losses.size(), losses.size() == 1 ? Kind::mean : Kind::samples);
  losses_.insert(losses_.end(), losses.begin(), losses.end());
}

void LossLog::add_other(std::size_t begin, std::span<const std::uint32_t> indices,
                        std::span<const float> losses) {
  append(begin, indices.size(), losses.size() == 1 ? Kind::other_mean : Kind::other_samples);
  indices_.insert(indices_.end(), indices.begin(), indices.end());
  losses_.insert(losses_.end(), losses.begin(), losses.end());
}

std::vector<std::byte> LossLog::take() {
  std::vector<std::byte> out;
  std::size_t index = 0;
  std::size_t loss = 0;
  for (const Run& run : runs_) {
    write(std::span(&run, 1), out);
    write(std::span<const std::uint32_t>(indices_).subspan(index, num_indices(run)), out);
    write(std::span<const float>(losses_).subspan(loss, num_losses(run)), out);
    index += num_indices(run);
    loss += num_losses(run);
  }
  *this = {};
  return out;
}

std::uint64_t loss_log_bytes(std::uint64_t num_samples, std::uint64_t batch_size,
                             bool has_sample_losses) {
  const std::uint64_t num_whole = num_samples / batch_size;
  const std::uint64_t num_rest = num_samples % batch_size == 0 ? 0 : 1;
  const std::uint64_t num_runs = (num_whole > 0 ? 1 : 0) + num_rest;
  const std::uint64_t num_losses = has_sample_losses ? num_samples : num_whole + num_rest;
  return 16 * num_runs + 4 * num_losses;
}

LossReader::LossReader(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    read(1, bytes, log_.runs_);
    const LossLog::Run run = log_.runs_.back();
    read(LossLog::num_indices(run), bytes, log_.indices_);
    read(LossLog::num_losses(run), bytes, log_.losses_);
  }
}

LossReader::Batch LossReader::batch() const {
  const LossLog::Run& run = log_.runs_[run_];
  const std::size_t num_losses = LossLog::num_losses(run) / run.num_batches;
  return {.begin = static_cast<std::size_t>(run.begin) + batch_ * run.batch_size,
          .count = run.batch_size,
          .indices = std::span(log_.indices_).subspan(index_, LossLog::num_indices(run)),
          .losses = std::span(log_.losses_).subspan(loss_, num_losses)};
}

void LossReader::next() {
  const LossLog::Run& run = log_.runs_[run_];
  loss_ += LossLog::num_losses(run) / run.num_batches;
  index_ += LossLog::num_indices(run);
  if (++batch_ == run.num_batches) {
    batch_ = 0;
    ++run_;
  }
}

}  // namespace tamis::detail
