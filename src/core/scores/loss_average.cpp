// The average behind epsilon-greedy in Raju et al., Accelerating Deep Learning with Dynamic Data
// Pruning. The paper's constants could not be confirmed; the default is ours.
#include "core/scores/score_array.h"
#include "core/scores/scores.h"

namespace tamis::detail {

namespace {

class LossAverage final : public FloatScorer {
 public:
  LossAverage(std::size_t num_samples, const OptionMap& options)
      : FloatScorer("loss-average", options, num_samples), decay_(option("decay")) {}

  LossKind needs() const override { return LossKind::any_losses; }

  bool observe(const Observation& observation) override {
    apply(observation, [&](float old, std::size_t k) {
      const double loss = observation.loss(k);
      return static_cast<float>(
          old == old ? (1.0 - decay_) * static_cast<double>(old) + decay_ * loss : loss);
    });
    return true;
  }

 private:
  double decay_;
};

}  // namespace

std::unique_ptr<Scorer> make_loss_average(std::size_t num_samples, const OptionMap& options) {
  return std::make_unique<LossAverage>(num_samples, options);
}

}  // namespace tamis::detail
