// The bound behind UCB in Raju et al., Accelerating Deep Learning with Dynamic Data Pruning. The
// paper's constants could not be confirmed; the defaults are ours.
#include <algorithm>
#include <limits>

#include "core/scores/score_array.h"
#include "core/scores/scores.h"

namespace tamis::detail {

namespace {

struct LossMoments {
  float mean = kUnscored;
  float variance = 0.0F;
};

// The nearest finite float: the square of a huge loss does not fit.
float to_finite(double value) {
  constexpr double kMax = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kMax, kMax));
}

// Saves mean and variance of each sample side by side: shape [num_samples, 2].
class LossUcb final : public ArrayScorer<LossMoments> {
 public:
  LossUcb(std::size_t num_samples, const OptionMap& options)
      : ArrayScorer("loss-ucb", options, num_samples, "moments", LossMoments{}),
        decay_(option("decay")) {}

  LossKind needs() const override { return LossKind::any_losses; }

  bool observe(const Observation& observation) override {
    const double decay = decay_;
    apply(observation, [&](LossMoments old, std::size_t k) {
      const double loss = observation.loss(k);
      if (old.mean != old.mean) return LossMoments{.mean = static_cast<float>(loss)};
      const double mean = old.mean;
      const double variance = old.variance;
      return LossMoments{
          .mean = static_cast<float>((1.0 - decay) * mean + decay * loss),
          .variance = to_finite((1.0 - decay) * variance + decay * (loss - mean) * (loss - mean))};
    });
    return true;
  }

  std::span<const float> scores(Array<float>& scratch) const override {
    const double confidence = option("confidence");
    scratch = Array<float>(values().size());
    for (std::size_t i = 0; i < values().size(); ++i) {
      scratch[i] = to_finite(static_cast<double>(values()[i].mean) +
                             confidence * static_cast<double>(values()[i].variance));
    }
    return {scratch.data(), scratch.size()};
  }

 private:
  double decay_;
};

}  // namespace

std::unique_ptr<Scorer> make_loss_ucb(std::size_t num_samples, const OptionMap& options) {
  return std::make_unique<LossUcb>(num_samples, options);
}

}  // namespace tamis::detail
