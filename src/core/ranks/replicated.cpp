// Every rank keeps all scores and makes the same plan of the whole epoch, of which it takes every
// W-th sample. So it knows which samples another rank's loss belongs to, and one number per batch,
// exchanged after the epoch, rebuilds all scores everywhere. They are applied in the order of the
// plan, not of the ranks: all ranks do the same arithmetic and have the same scores, bit for bit.
// External: the same, but every rank's view is the whole plan.
#include <algorithm>
#include <array>
#include <cstdio>

#include "base/agreement.h"
#include "base/check.h"
#include "base/files/crc32c.h"
#include "core/ranks/run.h"

namespace tamis::detail {

namespace {

class Replicated final : public Run {
 public:
  explicit Replicated(RunParts parts) : Run(std::move(parts)) { log_.emplace(); }

  void exchange() override {
    std::vector<LossReader> logs;
    for (const auto& bytes : communicator_->all_gather(log_->take())) logs.emplace_back(bytes);
    std::vector<EpochPlan> plans;
    for (std::size_t r = 0; plan_ && r < logs.size(); ++r)
      plans.push_back(plan_->of_rank(r % num_shares()));
    for (;;) {
      std::size_t next = logs.size();
      for (std::size_t r = 0; r < logs.size(); ++r) {
        if (logs[r].done()) continue;
        if (next == logs.size() || logs[r].batch().begin < logs[next].batch().begin) next = r;
      }
      if (next == logs.size()) return;
      const LossReader::Batch batch = logs[next].batch();
      if (batch.indices.empty()) {
        apply_batch(scored_samples(plans[next], batch.begin, batch.count), batch, true);
      } else {
        apply_batch(batch.indices, batch, false);
      }
      logs[next].next();
    }
  }

 private:
  void apply_batch(std::span<const std::uint32_t> indices, const LossReader::Batch& batch,
                   bool distinct) {
    if (indices.empty()) return;
    if (batch.losses.size() < batch.count) {
      apply({.indices = indices,
             .mean_loss = static_cast<double>(batch.losses[0]),
             .norms = batch.norms,
             .distinct = distinct});
    } else {
      apply_losses(indices, batch.losses, batch.norms, distinct);
    }
  }

  // Into how many the ranks cut a plan.
  std::size_t num_shares() const { return options_.layout == Layout::external ? 1 : num_ranks(); }

  EpochPlan view(EpochPlan plan) const override { return view_from(plan, 0); }

  // Without the first `begin` samples of the order.
  EpochPlan view_from(const EpochPlan& plan, std::size_t begin) const {
    return {plan,
            {.size = shared_size(plan.size() - begin, num_shares(), options_.remainder),
             .begin = begin,
             .stride = num_shares(),
             .offset = rank() % num_shares(),
             .num_samples = plan.num_samples(),
             .num_selected = plan.num_selected()}};
  }

  void check_same_plan() const override {
    require_same(*communicator_, plan_fields(plan_->epoch(), plan_->view().begin,
                                             crc32c(std::as_bytes(plan_->order()))));
  }

  // In the order of the whole epoch.
  std::size_t whole_position() const {
    const std::size_t num_selected = plan_->order().size();
    const std::size_t begin = plan_->view().begin;
    if (position_ > 0 && position_ == plan_->size()) return num_selected;
    return std::min(begin + position_ * num_shares(), num_selected);
  }

  // External: each rank has trained on other samples of the same step; the last of all counts.
  std::size_t last_position() const {
    auto position = static_cast<std::int64_t>(whole_position());
    if (options_.layout == Layout::external) {
      communicator_->all_reduce(std::span(&position, 1), Reduction::maximum);
    }
    return static_cast<std::size_t>(position);
  }

  double share_done() const override {
    const auto num_selected = static_cast<double>(plan_->num_selected());
    return num_selected == 0.0 ? 1.0 : static_cast<double>(whole_position()) / num_selected;
  }

  WholeState whole_state(bool collects) override {
    WholeState whole = Run::whole_state(collects);
    if (plan_) whole.state.position = last_position();
    return whole;
  }

  void take_plan(const RunState& state) override {
    require_same(*communicator_, state.plan ? "state in an epoch" : "a new state");
    if (!state.plan) return;
    // A position that another number of ranks has left may fall between two steps of these ranks:
    // then their plan is the rest of the epoch.
    const std::size_t rest = state.position % num_shares();
    const bool is_done = state.position == state.plan->size();
    plan_ = view_from(*state.plan, rest == 0 || is_done ? 0 : state.position);
    position_ = is_done ? plan_->size() : rest == 0 ? state.position / num_shares() : 0;
    check_same_plan();
  }
};

}  // namespace

std::string plan_fields(std::uint64_t epoch, std::size_t begin, std::uint32_t checksum) {
  std::array<char, 9> digits{};
  std::snprintf(digits.data(), digits.size(), "%08x", checksum);
  return concat("epoch ", epoch, "\nposition ", begin, "\nplan with checksum ", digits.data());
}

std::unique_ptr<Run> make_replicated(RunParts parts) {
  return std::make_unique<Replicated>(std::move(parts));
}

}  // namespace tamis::detail
