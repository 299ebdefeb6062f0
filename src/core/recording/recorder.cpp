#include "tamis/recorder.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "base/random/random.h"
#include "base/random/subset.h"
#include "core/recording/record_files.h"

namespace tamis {

namespace fs = std::filesystem;
using detail::concat;
using detail::RecordShard;
using detail::require;

namespace {

std::vector<std::uint32_t> choose_samples(const RecorderOptions& options) {
  std::vector<std::uint32_t> samples = options.samples;
  if (!samples.empty()) {
    std::sort(samples.begin(), samples.end());
    return samples;
  }
  detail::RandomStream random(options.seed, 0, detail::Purpose::recording);
  const std::size_t count = std::min(options.num_recorded, options.num_samples);
  const Bitmap chosen = detail::choose(options.num_samples, count, random);
  samples.reserve(count);
  for (std::size_t i = 0; i < options.num_samples; ++i) {
    if (chosen.test(i)) samples.push_back(static_cast<std::uint32_t>(i));
  }
  return samples;
}

}  // namespace

void validate(const RecorderOptions& options) {
  require(
      options.num_samples >= 1 && options.num_samples <= std::numeric_limits<std::uint32_t>::max(),
      "Recorder", "num_samples", "in [1, 2^32 - 1]", options.num_samples);
  require(options.num_recorded >= 1, "Recorder", "num_recorded", "at least 1",
          options.num_recorded);
  require(options.norm_order == 1 || options.norm_order == 2, "Recorder", "norm_order", "1 or 2",
          options.norm_order);
  require(options.shard_bytes >= 1, "Recorder", "shard_bytes", "at least 1", options.shard_bytes);
  std::vector<std::uint32_t> sorted = options.samples;
  std::sort(sorted.begin(), sorted.end());
  if (!sorted.empty()) {
    require(sorted.back() < options.num_samples, "Recorder", "samples",
            concat("below num_samples (", options.num_samples, ")"), sorted.back());
  }
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
    require(false, "Recorder", "samples", "there once each", concat(*twice, " twice"));
  }
}

Recorder::Recorder(fs::path folder) : folder_(std::move(folder)) {
  detail::remove_unfinished(folder_);
  detail::RecordSamples chosen = detail::read_samples(folder_);
  num_samples_ = chosen.num_samples;
  norm_order_ = chosen.norm_order;
  shard_bytes_ = chosen.shard_bytes;
  samples_ = std::move(chosen.samples);
  recorded_ = std::make_unique<detail::RecordedSamples>(num_samples_, samples_);
  const std::size_t num_shards = detail::count_shards(folder_);
  shard_number_ = num_shards == 0 ? 0 : num_shards - 1;
  shard_ = std::make_unique<RecordShard>(
      num_shards == 0 ? RecordShard{} : detail::read_shard(folder_, shard_number_, *recorded_));
}

Recorder::Recorder(Recorder&&) noexcept = default;
Recorder& Recorder::operator=(Recorder&&) noexcept = default;

Recorder::~Recorder() {
  if (shard_ == nullptr) return;  // moved from
  try {
    flush();
  } catch (const std::exception&) {
    // Whoever needs to know calls flush().
  }
}

Recorder Recorder::create(const fs::path& folder, const RecorderOptions& options) {
  validate(options);
  if (exists(folder)) {
    throw std::runtime_error(
        concat(folder.native(),
               ": holds a recording already; a run that goes on with it loads its state first"));
  }
  fs::create_directories(folder);
  detail::write_samples(folder, {.num_samples = options.num_samples,
                                 .norm_order = options.norm_order,
                                 .shard_bytes = options.shard_bytes,
                                 .samples = choose_samples(options)});
  return Recorder(folder);
}

Recorder Recorder::open(const fs::path& folder) {
  if (!exists(folder)) throw std::runtime_error(concat(folder.native(), ": holds no recording"));
  return Recorder(folder);
}

bool Recorder::exists(const fs::path& folder) {
  return fs::is_regular_file(detail::samples_path(folder));
}

void Recorder::remove(const fs::path& folder) {
  if (!fs::is_directory(fs::symlink_status(folder))) return;
  detail::remove_record_files(folder);
  if (fs::is_empty(folder)) fs::remove(folder);
}

std::uint64_t Recorder::num_steps() const { return shard_->first_step + shard_->num_steps(); }

void Recorder::record(std::uint64_t epoch, std::span<const std::uint32_t> indices, double mean_loss,
                      std::span<const float> losses, std::span<const float> norms) {
  require(!indices.empty(), "Recorder", "indices of a batch", "at least one", 0);
  require(losses.empty() || losses.size() == indices.size(), "Recorder", "losses",
          concat("none or as many as indices (", indices.size(), ")"), losses.size());
  require(norms.empty() || norms.size() >= indices.size(), "Recorder", "norms",
          concat("none or at least as many as indices (", indices.size(), ")"), norms.size());
  require(epoch <= std::numeric_limits<std::uint32_t>::max(), "Recorder", "epoch", "below 2^32",
          epoch);
  for (const std::uint32_t index : indices) {
    if (index < num_samples_) continue;
    throw std::out_of_range(
        concat("Recorder: index must be in [0, ", num_samples_, "), got ", index));
  }
  RecordShard& shard = *shard_;
  shard.epochs.push_back(static_cast<std::uint32_t>(epoch));
  shard.batch_sizes.push_back(static_cast<std::uint32_t>(indices.size()));
  shard.mean_losses.push_back(static_cast<float>(mean_loss));
  shard.indices.insert(shard.indices.end(), indices.begin(), indices.end());
  for (std::size_t k = 0; k < indices.size(); ++k) {
    if (!recorded_->contains(indices[k])) continue;
    shard.own_losses.push_back(losses.empty() ? std::numeric_limits<float>::quiet_NaN()
                                              : losses[k]);
  }
  if (!norms.empty()) {
    shard.num_norms.resize(shard.num_steps());  // 0 for the steps before
    shard.num_norms.back() = static_cast<std::uint32_t>(norms.size());
    shard.norms.insert(shard.norms.end(), norms.begin(), norms.end());
  } else if (!shard.num_norms.empty()) {
    shard.num_norms.push_back(0);
  }
  is_written_ = false;
  if (shard.num_bytes() < shard_bytes_) return;
  flush();
  const std::uint64_t next = num_steps();
  ++shard_number_;
  // Keeps its memory, which the next shard needs as well.
  shard.truncate(0, *recorded_);
  shard.first_step = next;
}

void Recorder::record_true_losses(std::uint64_t epoch, std::span<const float> losses) {
  require(losses.size() == samples_.size(), "Recorder", "true losses",
          concat("one per recorded sample (", samples_.size(), ")"), losses.size());
  detail::write_true_losses(
      folder_,
      {.epoch = epoch, .num_steps = num_steps(), .losses = {losses.begin(), losses.end()}});
}

void Recorder::rewind(std::uint64_t num_steps_kept) {
  if (num_steps_kept > num_steps()) {
    throw std::runtime_error(concat(folder_.native(), ": the recording ends after step ",
                                    num_steps(), ", but the run stands at ", num_steps_kept));
  }
  for (const std::uint64_t epoch : detail::true_loss_epochs(folder_)) {
    const fs::path path = detail::true_losses_path(folder_, epoch);
    if (detail::read_true_losses(path, samples_.size()).num_steps > num_steps_kept) {
      fs::remove(path);
    }
  }
  // From the end, so that whenever this stops the files that are left are a recording.
  while (shard_->first_step > num_steps_kept) {
    fs::remove(detail::shard_path(folder_, shard_number_));
    *shard_ = detail::read_shard(folder_, --shard_number_, *recorded_);
  }
  if (num_steps_kept < num_steps()) {
    shard_->truncate(num_steps_kept - shard_->first_step, *recorded_);
    is_written_ = false;
  }
}

void Recorder::flush() {
  if (is_written_) return;
  detail::write_shard(folder_, shard_number_, *shard_);
  is_written_ = true;
}

}  // namespace tamis
