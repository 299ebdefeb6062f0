// The state of a sharded run as that of one Pruner over all samples, and back. Parts travel in
// blocks, so that only who needs the whole has memory for it.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "base/agreement.h"
#include "base/check.h"
#include "core/ranks/sharded.h"

namespace tamis::detail {

namespace {

constexpr std::size_t kBlock = std::size_t{1} << 22U;

// Collects what every rank gives and hands it to `use` with the number of the rank and the place of
// the block in what that rank gives. Ranks may give differently much.
void gather_blocks(Communicator& communicator, std::span<const std::byte> ours,
                   const std::function<void(std::size_t rank, std::size_t offset,
                                            std::span<const std::byte> bytes)>& use) {
  auto longest = static_cast<std::int64_t>(ours.size());
  communicator.all_reduce(std::span(&longest, 1), Reduction::maximum);
  for (std::size_t offset = 0; offset < static_cast<std::size_t>(longest); offset += kBlock) {
    const auto rest = ours.subspan(std::min(offset, ours.size()));
    const auto blocks = communicator.all_gather(rest.first(std::min(kBlock, rest.size())));
    for (std::size_t r = 0; r < blocks.size(); ++r) {
      if (!blocks[r].empty()) use(r, offset, blocks[r]);
    }
  }
}

}  // namespace

void ShardedRank::check_whole_fits() const {
  if (options_.num_samples > std::numeric_limits<std::uint32_t>::max()) {
    throw std::runtime_error(
        concat("DistributedPruner: the state of at most 2^32 - 1 samples can be one file, got ",
               options_.num_samples));
  }
}

// `whole` is null on ranks that do not collect.
void ShardedRank::gather_arrays(Pruner* whole) {
  const std::vector<ScorerArray> ours = pruner_.scorer_->arrays();
  const std::vector<ScorerArray> all =
      whole != nullptr ? whole->scorer_->arrays() : std::vector<ScorerArray>{};
  for (std::size_t a = 0; a < ours.size(); ++a) {
    const std::size_t row = ours[a].bytes.size() / pruner_.num_samples();
    gather_blocks(*communicator_, ours[a].bytes,
                  [&](std::size_t rank, std::size_t offset, std::span<const std::byte> bytes) {
                    if (whole == nullptr) return;
                    const std::uint64_t first = part_begin(options_.num_samples, num_ranks(), rank);
                    std::memcpy(
                        all[a].bytes.data() + static_cast<std::size_t>(first) * row + offset,
                        bytes.data(), bytes.size());
                  });
  }
}

Bitmap ShardedRank::gather_bitmap(const Bitmap& part) {
  Bitmap all(static_cast<std::size_t>(options_.num_samples));
  gather_blocks(*communicator_, std::as_bytes(part.words()),
                [&](std::size_t rank, std::size_t offset, std::span<const std::byte> bytes) {
                  const std::uint64_t first = part_begin(options_.num_samples, num_ranks(), rank);
                  for (std::size_t k = 0; k < bytes.size() * 8; ++k) {
                    const bool bit =
                        ((std::to_integer<unsigned>(bytes[k / 8]) >> (k % 8)) & 1U) != 0;
                    if (bit) all.set(static_cast<std::size_t>(first) + offset * 8 + k);
                  }
                });
  return all;
}

Bitmap ShardedRank::part_of(const Bitmap& whole) const {
  Bitmap part(pruner_.num_samples());
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (whole.test(static_cast<std::size_t>(first_) + i)) part.set(i);
  }
  return part;
}

void ShardedRank::gather_plan(Pruner* whole) {
  const EpochPlan& plan = *pruner_.plan();
  Selection selection = plan.selection();
  Bitmap rescaled = selection.rescaled.empty() ? Bitmap(pruner_.num_samples()) : selection.rescaled;
  selection.kept = gather_bitmap(selection.kept);
  selection.rescaled = gather_bitmap(rescaled);
  if (whole == nullptr) return;
  if (selection.rescaled.count() == 0) selection.rescaled = {};
  whole->plan_.emplace(std::move(selection), options_.seed, plan.epoch(), plan.pruning(),
                       options_.homogeneous_batch_size);
  if (is_mid_epoch()) {
    whole->position_ = begin_ + position_;
    whole->num_position_ranks_ = num_ranks();
  } else {
    whole->position_ = position_ == 0 && plan_->size() > 0 ? 0 : whole->plan_->size();
  }
}

void ShardedRank::use_whole(bool everywhere, const std::function<void(const Pruner&)>& use) {
  check_whole_fits();
  exchange();
  const bool collects = everywhere || communicator_->rank() == 0;
  std::optional<Pruner> whole;
  together(*communicator_, [&] {
    if (collects) whole.emplace(options_);
  });
  gather_arrays(whole ? &*whole : nullptr);
  if (plan_) gather_plan(whole ? &*whole : nullptr);
  std::array<std::int64_t, 2> counts = {
      static_cast<std::int64_t>(pruner_.num_observations_),
      static_cast<std::int64_t>(pruner_.num_skipped_observations_)};
  communicator_->all_reduce(counts);
  together(*communicator_, [&] {
    if (!whole) return;
    whole->scorer_->set_numbers(numbers_);
    whole->num_observations_ = static_cast<std::uint64_t>(counts[0]);
    whole->num_skipped_observations_ = static_cast<std::uint64_t>(counts[1]);
    whole->num_epochs_started_ = num_epochs_started_;
    whole->num_samples_planned_ = num_samples_planned_;
    use(*whole);
  });
}

void ShardedRank::take_whole(const std::function<void(Pruner&)>& load) {
  check_whole_fits();
  std::optional<Pruner> whole;
  together(*communicator_, [&] {
    whole.emplace(options_);
    whole->num_position_ranks_ = num_ranks();
    load(*whole);
    const bool is_inside =
        whole->plan_ && whole->position_ > 0 && whole->position_ < whole->plan_->size();
    if (is_inside && whole->num_position_ranks_ == 0) {
      throw std::runtime_error(
          "DistributedPruner: the state was saved in the middle of an epoch in the replicated "
          "layout; the sharded one can go on from the end of an epoch only");
    }
  });
  const std::vector<ScorerArray> all = whole->scorer_->arrays();
  const std::vector<ScorerArray> ours = pruner_.scorer_->arrays();
  for (std::size_t a = 0; a < ours.size(); ++a) {
    const std::size_t row = ours[a].bytes.size() / pruner_.num_samples();
    std::memcpy(ours[a].bytes.data(), all[a].bytes.data() + static_cast<std::size_t>(first_) * row,
                ours[a].bytes.size());
  }
  numbers_ = whole->scorer_->numbers();
  pruner_.scorer_->set_numbers(numbers_);
  // The sum over the ranks is what use_whole() writes: rank 0 takes all of it.
  const bool is_first = communicator_->rank() == 0;
  pruner_.num_observations_ = is_first ? whole->num_observations_ : 0;
  pruner_.num_skipped_observations_ = is_first ? whole->num_skipped_observations_ : 0;
  num_epochs_started_ = whole->num_epochs_started_;
  num_samples_planned_ = whole->num_samples_planned_;
  plan_.reset();
  pruner_.plan_.reset();
  position_ = begin_ = 0;
  if (!whole->plan_) return;

  const EpochPlan& plan = *whole->plan_;
  Selection selection = plan.selection();
  selection.kept = part_of(selection.kept);
  if (!selection.rescaled.empty()) selection.rescaled = part_of(selection.rescaled);
  pruner_.plan_ = make_plan(std::move(selection), plan.epoch(), plan.pruning());
  const bool is_done = whole->num_position_ranks_ == 0 && whole->position_ == plan.size();
  view_plan(is_done ? std::numeric_limits<std::size_t>::max() : whole->position_);
}

}  // namespace tamis::detail
