#include "core/ranks/loss_log.h"

#include <cstring>
#include <stdexcept>

namespace tamis::detail {

namespace {

constexpr std::uint32_t kMaxBatches = (1U << 29U) - 1;

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

void LossLog::append(std::size_t begin, std::size_t count, Contents contents,
                     std::span<const float> losses, std::span<const float> norms) {
  floats_.insert(floats_.end(), losses.begin(), losses.end());
  floats_.insert(floats_.end(), norms.begin(), norms.end());
  if (!contents.indices && !runs_.empty()) {
    Run& last = runs_.back();
    const std::uint64_t end = last.begin + std::uint64_t{last.batch_size} * last.num_batches;
    if (last.contents() == contents && last.batch_size == count && begin == end &&
        last.num_batches < kMaxBatches) {
      last.num_batches = (last.num_batches + 1) & kMaxBatches;
      return;
    }
  }
  runs_.push_back({.begin = begin,
                   .batch_size = static_cast<std::uint32_t>(count),
                   .num_batches = 1,
                   .has_indices = contents.indices,
                   .has_losses = contents.losses,
                   .has_norms = contents.norms});
}

// A batch of one sample has one loss either way.
void LossLog::add(std::size_t begin, std::size_t count, std::span<const float> losses,
                  std::span<const float> norms) {
  append(begin, count, {.losses = losses.size() > 1, .norms = !norms.empty()}, losses, norms);
}

void LossLog::add_other(std::size_t begin, std::span<const std::uint32_t> indices,
                        std::span<const float> losses, std::span<const float> norms) {
  indices_.insert(indices_.end(), indices.begin(), indices.end());
  append(begin, indices.size(),
         {.indices = true, .losses = losses.size() > 1, .norms = !norms.empty()}, losses, norms);
}

std::vector<std::byte> LossLog::take() {
  std::vector<std::byte> out;
  std::size_t index = 0;
  std::size_t number = 0;
  for (const Run& run : runs_) {
    write(std::span(&run, 1), out);
    write(std::span<const std::uint32_t>(indices_).subspan(index, run.num_indices()), out);
    write(std::span<const float>(floats_).subspan(number, run.num_floats()), out);
    index += run.num_indices();
    number += run.num_floats();
  }
  *this = {};
  return out;
}

std::uint64_t loss_log_bytes(std::uint64_t num_samples, std::uint64_t batch_size, LossKind kind) {
  const std::uint64_t num_whole = num_samples / batch_size;
  const std::uint64_t num_rest = num_samples % batch_size == 0 ? 0 : 1;
  const std::uint64_t num_runs = (num_whole > 0 ? 1 : 0) + num_rest;
  const std::uint64_t num_means = kind == LossKind::sample_losses ? 0 : num_whole + num_rest;
  const bool has_means_only = kind == LossKind::mean_loss || kind == LossKind::any_losses;
  const std::uint64_t num_others = has_means_only ? 0 : num_samples;
  return 16 * num_runs + 4 * (num_means + num_others);
}

LossReader::LossReader(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    read(1, bytes, log_.runs_);
    const LossLog::Run run = log_.runs_.back();
    read(run.num_indices(), bytes, log_.indices_);
    read(run.num_floats(), bytes, log_.floats_);
  }
}

LossReader::Batch LossReader::batch() const {
  const LossLog::Run& run = log_.runs_[run_];
  const std::span<const float> floats = std::span(log_.floats_).subspan(float_);
  return {.begin = static_cast<std::size_t>(run.begin) + batch_ * run.batch_size,
          .count = run.batch_size,
          .indices = std::span(log_.indices_).subspan(index_, run.num_indices()),
          .losses = floats.first(run.num_losses()),
          .norms = floats.subspan(run.num_losses(), run.num_norms())};
}

void LossReader::next() {
  const LossLog::Run& run = log_.runs_[run_];
  float_ += run.num_losses() + run.num_norms();
  index_ += run.num_indices();
  if (++batch_ == run.num_batches) {
    batch_ = 0;
    ++run_;
  }
}

}  // namespace tamis::detail
