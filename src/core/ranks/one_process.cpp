// One process keeps all scores and trains on the whole plan.
#include "core/ranks/run.h"

namespace tamis::detail {

namespace {

class OneProcess final : public Run {
 public:
  explicit OneProcess(RunParts parts) : Run(std::move(parts)) {}

 private:
  EpochPlan view(EpochPlan plan) const override { return plan; }
  void take_plan(const RunState& state) override {
    plan_ = state.plan;
    position_ = state.position;
  }
};

}  // namespace

std::unique_ptr<Run> make_one_process(RunParts parts) {
  return std::make_unique<OneProcess>(std::move(parts));
}

}  // namespace tamis::detail
