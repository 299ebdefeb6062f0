// Every rank keeps all scores and makes the same plan of the whole epoch, of which it takes every
// W-th sample. So it knows which samples another rank's loss belongs to, and one number per batch,
// exchanged after the epoch, rebuilds all scores everywhere. They are applied in the order of the
// plan, not of the ranks: all ranks do the same arithmetic and have the same scores, bit for bit.
#include <algorithm>

#include "base/agreement.h"
#include "base/check.h"
#include "base/files/crc32c.h"
#include "core/ranks/loss_log.h"
#include "core/ranks/prediction.h"
#include "core/ranks/rank_state.h"

namespace tamis::detail {

namespace {

class ReplicatedRank final : public RankState {
 public:
  using RankState::RankState;

  const PrunerOptions& options() const override { return pruner_.options(); }
  std::uint64_t first_sample() const override { return 0; }
  double pruned_share() const override { return pruner_.pruned_share(); }

  void start_epoch(std::uint64_t epoch) override {
    exchange();
    plan_.reset();
    pruner_.start_epoch(epoch);
    view_plan();
  }

  void exchange() override {
    std::vector<LossReader> logs;
    for (const auto& bytes : communicator_->all_gather(log_.take())) logs.emplace_back(bytes);
    for (;;) {
      std::size_t next = logs.size();
      for (std::size_t r = 0; r < logs.size(); ++r) {
        if (logs[r].done()) continue;
        if (next == logs.size() || logs[r].batch().begin < logs[next].batch().begin) next = r;
      }
      if (next == logs.size()) return;
      const LossReader::Batch batch = logs[next].batch();
      book(batch.indices.empty() ? scored_samples(plan_->of_rank(next), batch.begin, batch.count)
                                 : batch.indices,
           batch.losses);
      logs[next].next();
    }
  }

  void observe(std::size_t begin, std::size_t count, std::span<const float> losses) override {
    if (losses.size() == 1) {
      log_.add(begin, count, losses[0]);
    } else {
      log_.add(begin, losses);
    }
  }

  void observe_other(std::span<const std::uint32_t> indices,
                     std::span<const float> losses) override {
    log_.add_other(position_, indices, losses);
  }

  void set_position(std::size_t position) override {
    position_ = position;
    const std::size_t num_selected = pruner_.plan()->size();
    const std::size_t done = begin_ + position * num_ranks();
    pruner_.set_position(position == plan_->size() ? num_selected : std::min(done, num_selected));
  }

  void use_whole(bool everywhere, const std::function<void(const Pruner&)>& use) override {
    exchange();
    together(*communicator_, [&] {
      if (everywhere || communicator_->rank() == 0) use(pruner_);
    });
  }

  void take_whole(const std::function<void(Pruner&)>& load) override {
    Pruner loaded(pruner_.options());
    together(*communicator_, [&] { load(loaded); });
    log_ = {};
    plan_.reset();
    pruner_ = std::move(loaded);
    require_same(*communicator_, pruner_.plan() != nullptr ? "state in an epoch" : "a new state");
    if (pruner_.plan() != nullptr) view_plan();
  }

 private:
  // Collective: plans that differ are found before anybody trains on them.
  void view_plan() {
    const EpochPlan& plan = *pruner_.plan();
    begin_ = pruner_.position();
    position_ = 0;
    plan_.emplace(plan,
                  RankPlan::View{.begin = begin_,
                                 .stride = num_ranks(),
                                 .offset = communicator_->rank(),
                                 .first_sample = 0,
                                 .num_samples = plan.num_samples(),
                                 .num_selected = plan.size()},
                  shared_size(plan.size() - begin_, num_ranks(), distribution_.remainder));
    require_same(*communicator_,
                 plan_fields(plan.epoch(), begin_, crc32c(std::as_bytes(plan.order()))));
  }

  LossLog log_;
  std::size_t begin_ = 0;  // samples of the plan that were done when it was loaded
};

}  // namespace

std::unique_ptr<RankState> make_replicated(const PrunerOptions& options,
                                           std::shared_ptr<Communicator> communicator,
                                           const DistributedOptions& distribution) {
  return std::make_unique<ReplicatedRank>(Pruner(options), std::move(communicator), distribution);
}

}  // namespace tamis::detail
