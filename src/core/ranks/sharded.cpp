// The samples are cut into contiguous parts of equal length, one per rank, which keeps their scores
// and trains on them only. So it needs no score of another rank; ranks make their selections
// together, from statistics that they add up.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "base/agreement.h"
#include "base/check.h"
#include "core/policies/sharded_view.h"
#include "core/ranks/run.h"
#include "core/state/state_fields.h"

namespace tamis::detail {

namespace {

constexpr std::size_t kBlock = std::size_t{1} << 22U;

std::vector<std::byte> to_bytes(const OptionMap& numbers) {
  std::vector<std::byte> bytes;
  for (const auto& [name, value] : numbers) {
    const auto own = std::as_bytes(std::span(&value, 1));
    bytes.insert(bytes.end(), own.begin(), own.end());
  }
  return bytes;
}

OptionMap from_bytes(OptionMap names, std::span<const std::byte> bytes) {
  for (auto& [name, value] : names) {
    std::memcpy(&value, bytes.data(), sizeof value);
    bytes = bytes.subspan(sizeof value);
  }
  return names;
}

// Collects what every rank gives, in blocks, and hands it to `use` with the number of the rank and
// the place of the block in what that rank gives. Ranks may give different amounts.
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

class Sharded final : public Run {
 public:
  explicit Sharded(RunParts parts) : Run(std::move(parts)), numbers_(scorer_->numbers()) {}

  void exchange() override {
    if (numbers_.empty()) return;
    const OptionMap ours = scorer_->numbers();
    std::vector<OptionMap> all;
    for (const auto& bytes : communicator_->all_gather(to_bytes(ours))) {
      all.push_back(from_bytes(ours, bytes));
    }
    numbers_ = scorer_->agree(numbers_, all);
    scorer_->set_numbers(numbers_);
  }

  void record(const std::filesystem::path&, RecorderOptions) override {
    throw std::invalid_argument(
        "Pruner: a run in the sharded layout cannot be recorded, because no rank knows the losses "
        "of all samples; the replicated one can");
  }

 private:
  Selection select(std::uint64_t epoch) const override {
    Array<float> scratch;
    return planner_->select(
        ShardedView(scorer_->scores(scratch), first_, options_.num_samples, *communicator_), epoch,
        {num_epochs_started_, num_samples_planned_});
  }

  EpochPlan view(EpochPlan plan) const override {
    const bool pads = options_.remainder == Remainder::pad;
    const auto size = static_cast<std::int64_t>(plan.size());
    std::array<std::int64_t, 2> sizes = {size, pads ? -size : size};
    const std::span<std::int64_t> all(sizes);
    communicator_->all_reduce(all.first(1));
    communicator_->all_reduce(all.last(1), Reduction::minimum);
    const auto common = static_cast<std::size_t>(pads ? -sizes[1] : sizes[1]);
    return {plan,
            {.size = common,
             .first_sample = first_,
             .num_samples = options_.num_samples,
             .num_selected = static_cast<std::uint64_t>(sizes[0])}};
  }

  void check_same_plan() const override {
    const SelectionReport& report = plan_->report();
    std::string fields = concat("epoch ", plan_->epoch());
    if (report.threshold) fields += "\nthreshold " + to_text(*report.threshold);
    for (const ScoreGroup& group : report.groups) {
      fields += "\ngroup that begins at " + to_text(static_cast<double>(group.low));
    }
    require_same(*communicator_, fields);
  }

  void check_whole_fits() const {
    if (options_.num_samples > std::numeric_limits<std::uint32_t>::max()) {
      throw std::runtime_error(
          concat("Pruner: the state of at most 2^32 - 1 samples can be one file, got ",
                 options_.num_samples));
    }
  }

  std::size_t part_of_rank(std::size_t rank) const {
    return static_cast<std::size_t>(part_begin(options_.num_samples, num_ranks(), rank));
  }

  WholeState whole_state(bool collects) override {
    check_whole_fits();
    WholeState whole = Run::whole_state(collects);
    whole.state.numbers = numbers_;
    together([&] {
      if (!collects) return;
      for (const ScorerArray& array : whole.arrays) {
        whole.storage.emplace_back(array.bytes.size() / num_kept() * options_.num_samples);
      }
    });
    for (std::size_t a = 0; a < whole.arrays.size(); ++a) {
      std::span<std::byte>& bytes = whole.arrays[a].bytes;
      const std::size_t row = bytes.size() / num_kept();
      gather_blocks(*communicator_, bytes,
                    [&](std::size_t rank, std::size_t offset, std::span<const std::byte> block) {
                      if (!collects) return;
                      std::memcpy(whole.storage[a].data() + part_of_rank(rank) * row + offset,
                                  block.data(), block.size());
                    });
      if (collects) bytes = {whole.storage[a].data(), whole.storage[a].size()};
    }
    if (plan_) gather_plan(whole.state);
    std::array<std::int64_t, 2> counts = {static_cast<std::int64_t>(num_observations_),
                                          static_cast<std::int64_t>(num_skipped_observations_)};
    communicator_->all_reduce(counts);
    whole.state.num_observations = static_cast<std::uint64_t>(counts[0]);
    whole.state.num_skipped_observations = static_cast<std::uint64_t>(counts[1]);
    return whole;
  }

  void gather_plan(RunState& state) const {
    Selection selection = plan_->selection();
    if (selection.rescaled.empty()) selection.rescaled = Bitmap(num_kept());
    selection.kept = gather_bitmap(selection.kept);
    selection.rescaled = gather_bitmap(selection.rescaled);
    if (selection.rescaled.count() == 0) selection.rescaled = {};
    state.plan.emplace(std::move(selection), options_.seed, plan_->epoch(), plan_->pruning(),
                       options_.homogeneous_batch_size);
    if (position_ > 0 && position_ < plan_->size()) {
      state.position = position_;
      state.num_position_ranks = num_ranks();
    } else {
      state.position = position_ == 0 && plan_->size() > 0 ? 0 : state.plan->size();
    }
  }

  Bitmap gather_bitmap(const Bitmap& part) const {
    Bitmap all(options_.num_samples);
    gather_blocks(*communicator_, std::as_bytes(part.words()),
                  [&](std::size_t rank, std::size_t offset, std::span<const std::byte> bytes) {
                    for (std::size_t k = 0; k < bytes.size() * 8; ++k) {
                      const bool bit =
                          ((std::to_integer<unsigned>(bytes[k / 8]) >> (k % 8)) & 1U) != 0;
                      if (bit) all.set(part_of_rank(rank) + offset * 8 + k);
                    }
                  });
    return all;
  }

  Bitmap part_of(const Bitmap& whole) const {
    Bitmap part(num_kept());
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (whole.test(static_cast<std::size_t>(first_) + i)) part.set(i);
    }
    return part;
  }

  void check_state(const SafetensorsReader& file, const RunState& state) const override {
    Run::check_state(file, state);
    check_whole_fits();
    const bool is_inside = state.plan && state.position > 0 && state.position < state.plan->size();
    if (is_inside && state.num_position_ranks == 0) {
      file.fail(
          "was saved in the middle of an epoch in the replicated layout; the sharded one can go on "
          "from the end of an epoch only");
    }
  }

  void take_plan(const RunState& state) override {
    numbers_ = state.numbers;
    // The sum over the ranks is what is saved: rank 0 takes all of it.
    if (rank() != 0) num_observations_ = num_skipped_observations_ = 0;
    if (!state.plan) return;
    Selection selection = state.plan->selection();
    selection.kept = part_of(selection.kept);
    if (!selection.rescaled.empty()) selection.rescaled = part_of(selection.rescaled);
    const bool is_done = state.num_position_ranks == 0 && state.position == state.plan->size();
    plan_ = view(make_plan(std::move(selection), state.plan->epoch(), state.plan->pruning()));
    position_ = is_done ? plan_->size() : state.position;
  }

  OptionMap numbers_;  // the scorer's when the ranks last agreed on them
};

}  // namespace

std::unique_ptr<Run> make_sharded(RunParts parts) {
  return std::make_unique<Sharded>(std::move(parts));
}

}  // namespace tamis::detail
