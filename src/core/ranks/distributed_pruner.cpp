#include "tamis/distributed_pruner.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/agreement.h"
#include "base/check.h"
#include "base/files/crc32c.h"
#include "core/ranks/rank_state.h"
#include "core/state/state_fields.h"

namespace tamis {

namespace {

using detail::concat;

std::string describe(const detail::RankState& state) {
  detail::Metadata fields;
  detail::write_options(state.options(), fields);
  const DistributedOptions& distribution = state.distribution();
  fields.emplace_back("layout", to_text(distribution.layout));
  fields.emplace_back("remainder", distribution.remainder == Remainder::pad ? "pad" : "drop");
  std::string text;
  for (const auto& [name, value] : fields) text.append(name).append(" ").append(value).append("\n");
  return text;
}

std::unique_ptr<detail::RankState> make_state(const PrunerOptions& options,
                                              std::shared_ptr<Communicator> communicator,
                                              DistributedOptions distribution) {
  if (distribution.layout == Layout::automatic) {
    distribution.layout =
        options.num_samples <= kMaxReplicated ? Layout::replicated : Layout::sharded;
  }
  return distribution.layout == Layout::replicated
             ? detail::make_replicated(options, std::move(communicator), distribution)
             : detail::make_sharded(options, communicator, distribution);
}

const RankPlan& running_plan(const detail::RankState& state) {
  if (state.plan() == nullptr) {
    throw std::runtime_error("DistributedPruner: no epoch is running; call start_epoch first");
  }
  return *state.plan();
}

void check_range(const detail::RankState& state, std::size_t begin, std::size_t count) {
  const std::size_t size = running_plan(state).size();
  if (begin > size || count > size - begin) {
    throw std::out_of_range(concat("DistributedPruner: samples [", begin, ", ", begin + count,
                                   ") must lie in a plan of ", size));
  }
}

void check_batch(const detail::RankState& state, std::size_t count, bool is_mean) {
  if (count == 0) {
    throw std::invalid_argument("DistributedPruner: a batch must not be empty, got 0 samples");
  }
  if (is_mean && state.pruner().scorer().needs() == LossKind::sample_losses) {
    throw std::invalid_argument(concat(
        "DistributedPruner: score ", state.pruner().scorer().spec().name,
        " needs one loss per sample, got the mean of ", count, "; batch-loss works with the mean"));
  }
}

std::vector<std::uint32_t> to_own(const detail::RankState& state,
                                  std::span<const SampleIndex> indices) {
  const std::uint64_t first = state.first_sample();
  const std::uint64_t end = first + state.pruner().num_samples();
  std::vector<std::uint32_t> own;
  own.reserve(indices.size());
  for (const SampleIndex index : indices) {
    const auto sample = static_cast<std::uint64_t>(index);
    if (sample < first || sample >= end) {
      throw std::out_of_range(
          concat("DistributedPruner: index must be in [", first, ", ", end, "), got ", index));
    }
    own.push_back(static_cast<std::uint32_t>(sample - first));
  }
  return own;
}

}  // namespace

Layout parse_layout(std::string_view name) {
  for (const Layout layout : {Layout::automatic, Layout::replicated, Layout::sharded}) {
    if (name == to_text(layout)) return layout;
  }
  throw std::invalid_argument(
      concat("layout must be one of automatic, replicated, sharded, got ", name));
}

std::string_view to_text(Layout layout) {
  if (layout == Layout::automatic) return "automatic";
  return layout == Layout::replicated ? "replicated" : "sharded";
}

DistributedPruner::DistributedPruner(const PrunerOptions& options,
                                     std::shared_ptr<Communicator> communicator,
                                     const DistributedOptions& distribution) {
  detail::together(*communicator,
                   [&] { state_ = make_state(options, communicator, distribution); });
  detail::require_same(*communicator, describe(*state_));
}

DistributedPruner::DistributedPruner(DistributedPruner&&) noexcept = default;
DistributedPruner& DistributedPruner::operator=(DistributedPruner&&) noexcept = default;
DistributedPruner::~DistributedPruner() = default;

const PrunerOptions& DistributedPruner::options() const { return state_->options(); }
const DistributedOptions& DistributedPruner::distribution() const { return state_->distribution(); }
const Schedule& DistributedPruner::schedule() const { return state_->pruner().schedule(); }
const Scorer& DistributedPruner::scorer() const { return state_->pruner().scorer(); }
Communicator& DistributedPruner::communicator() const { return state_->communicator(); }
std::uint64_t DistributedPruner::first_sample() const { return state_->first_sample(); }
std::size_t DistributedPruner::num_kept() const { return state_->pruner().num_samples(); }

const RankPlan& DistributedPruner::start_epoch(std::uint64_t epoch) {
  if (plan() != nullptr && plan()->epoch() == epoch) return *plan();
  if (epoch >= schedule().num_epochs) {
    throw std::out_of_range(concat("DistributedPruner: epoch must be below num_epochs (",
                                   schedule().num_epochs, "), got ", epoch));
  }
  state_->start_epoch(epoch);
  return *plan();
}

const RankPlan* DistributedPruner::plan() const { return state_->plan(); }

void DistributedPruner::observe(std::size_t begin, std::size_t count, double mean_loss) {
  check_range(*state_, begin, count);
  check_batch(*state_, count, true);
  const auto loss = static_cast<float>(mean_loss);
  state_->observe(begin, count, std::span(&loss, 1));
}

void DistributedPruner::observe(std::size_t begin, std::span<const float> losses) {
  check_range(*state_, begin, losses.size());
  check_batch(*state_, losses.size(), false);
  state_->observe(begin, losses.size(), losses);
}

void DistributedPruner::observe_other(std::span<const SampleIndex> indices, double mean_loss) {
  check_batch(*state_, indices.size(), true);
  const auto loss = static_cast<float>(mean_loss);
  state_->observe_other(to_own(*state_, indices), std::span(&loss, 1));
}

void DistributedPruner::observe_other(std::span<const SampleIndex> indices,
                                      std::span<const float> losses) {
  check_batch(*state_, indices.size(), false);
  detail::require(losses.size() == indices.size(), "DistributedPruner", "losses",
                  concat("as many as indices (", indices.size(), ")"), losses.size());
  state_->observe_other(to_own(*state_, indices), losses);
}

std::size_t DistributedPruner::position() const { return state_->position(); }

void DistributedPruner::set_position(std::size_t position) {
  check_range(*state_, position, 0);
  state_->set_position(position);
}

double DistributedPruner::progress() const { return state_->progress(); }
double DistributedPruner::pruned_share() const { return state_->pruned_share(); }
void DistributedPruner::exchange() { state_->exchange(); }
std::vector<float> DistributedPruner::scores() const { return state_->pruner().scores(); }
std::uint64_t DistributedPruner::num_observations() const {
  return state_->pruner().num_observations();
}
std::uint64_t DistributedPruner::num_skipped_observations() const {
  return state_->pruner().num_skipped_observations();
}

void DistributedPruner::save(const std::filesystem::path& path) {
  state_->use_whole(false, [&](const Pruner& whole) { whole.save(path); });
}

void DistributedPruner::load(const std::filesystem::path& path) {
  state_->take_whole([&](Pruner& whole) { whole.load(path); });
}

std::vector<std::byte> DistributedPruner::serialize() {
  std::vector<std::byte> bytes;
  state_->use_whole(true, [&](const Pruner& whole) { bytes = whole.serialize(); });
  return bytes;
}

void DistributedPruner::deserialize(std::span<const std::byte> bytes) {
  detail::require_same(communicator(), concat("state with checksum ", detail::crc32c(bytes)));
  state_->take_whole([&](Pruner& whole) { whole.deserialize(bytes); });
}

}  // namespace tamis
