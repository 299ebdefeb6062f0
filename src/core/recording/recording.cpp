#include "tamis/recording.h"

#include <algorithm>
#include <stdexcept>

#include "base/check.h"
#include "core/recording/record_files.h"
#include "tamis/recorder.h"

namespace tamis {

namespace fs = std::filesystem;
using detail::concat;

namespace {

constexpr const char* kInRun = "record";

// Place of a recorded sample. A table for all samples of the data set would trust their number.
std::uint32_t place_of(std::span<const std::uint32_t> samples, std::uint32_t sample) {
  return static_cast<std::uint32_t>(std::lower_bound(samples.begin(), samples.end(), sample) -
                                    samples.begin());
}

}  // namespace

bool Recording::exists(const fs::path& folder) {
  return Recorder::exists(folder) || Recorder::exists(folder / kInRun);
}

Recording::Recording(const fs::path& folder)
    : folder_(Recorder::exists(folder) ? folder : folder / kInRun) {
  if (!Recorder::exists(folder_)) {
    throw std::runtime_error(concat(folder.native(), ": holds no recording"));
  }
  detail::RecordSamples chosen = detail::read_samples(folder_);
  num_samples_ = chosen.num_samples;
  norm_order_ = chosen.norm_order;
  samples_ = std::move(chosen.samples);
}

void Recording::read(const std::function<void(const RecordedStep&)>& visit) const {
  const detail::RecordedSamples recorded(num_samples_, samples_);
  std::vector<std::uint32_t> places;
  std::uint64_t step = 0;
  const std::size_t num_shards = detail::count_shards(folder_);
  for (std::size_t number = 0; number < num_shards; ++number) {
    const detail::RecordShard shard = detail::read_shard(folder_, number, recorded);
    if (shard.first_step != step) {
      throw std::runtime_error(concat(detail::shard_path(folder_, number).native(),
                                      ": begins with step ", shard.first_step, ", not ", step));
    }
    std::span<const std::uint32_t> indices(shard.indices);
    std::span<const float> losses(shard.own_losses);
    std::span<const float> norms(shard.norms);
    for (std::size_t k = 0; k < shard.num_steps(); ++k, ++step) {
      const auto batch = indices.first(shard.batch_sizes[k]);
      places.clear();
      for (const std::uint32_t index : batch) {
        if (recorded.contains(index)) places.push_back(place_of(samples_, index));
      }
      const std::size_t num_norms = shard.num_norms.empty() ? 0 : shard.num_norms[k];
      visit({.step = step,
             .epoch = shard.epochs[k],
             .mean_loss = shard.mean_losses[k],
             .indices = batch,
             .places = places,
             .losses = losses.first(places.size()),
             .norms = norms.first(num_norms)});
      norms = norms.subspan(num_norms);
      indices = indices.subspan(batch.size());
      losses = losses.subspan(places.size());
    }
  }
}

std::vector<TrueLosses> Recording::true_losses() const {
  std::vector<TrueLosses> all;
  for (const std::uint64_t epoch : detail::true_loss_epochs(folder_)) {
    all.push_back(
        detail::read_true_losses(detail::true_losses_path(folder_, epoch), samples_.size()));
  }
  return all;
}

}  // namespace tamis
