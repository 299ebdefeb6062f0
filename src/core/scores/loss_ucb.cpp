// The bound behind UCB in Raju et al., Accelerating Deep Learning with Dynamic Data Pruning. The
// paper's constants could not be confirmed; the defaults are ours.
#include "tamis/scores/loss_ucb.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "core/scores/score_array.h"

namespace tamis {

namespace {

struct LossMoments {
  float mean = kUnscored;
  float variance = 0.0F;
};

// The nearest finite float: the square of a huge loss does not fit.
float to_finite(double value) {
  return static_cast<float>(
      std::min(value, static_cast<double>(std::numeric_limits<float>::max())));
}

class LossUcb final : public Scorer {
 public:
  LossUcb(std::size_t num_samples, const LossUcbOptions& options)
      : options_(options), moments_(num_samples, LossMoments{}) {}

  Spec spec() const override {
    return {"loss-ucb", {{"decay", options_.decay}, {"confidence", options_.confidence}}};
  }
  std::size_t num_samples() const override { return moments_.size(); }
  LossKind prefers() const override { return LossKind::sample_losses; }

  bool observe(const Observation& observation) override {
    const double decay = options_.decay;
    detail::apply_once(observation, moments_, scratch_, [&](LossMoments old, std::size_t k) {
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
    scratch = Array<float>(moments_.size());
    for (std::size_t i = 0; i < moments_.size(); ++i) {
      scratch[i] = to_finite(static_cast<double>(moments_[i].mean) +
                             options_.confidence * static_cast<double>(moments_[i].variance));
    }
    return {scratch.data(), scratch.size()};
  }
  // Mean and variance of each sample side by side: shape [num_samples, 2].
  std::vector<ScorerArray> arrays() override {
    return {detail::saved_array("moments", "F32", moments_)};
  }

 private:
  LossUcbOptions options_;
  Array<LossMoments> moments_;
  std::vector<LossMoments> scratch_;
};

}  // namespace

std::unique_ptr<Scorer> make_loss_ucb(std::size_t num_samples, const LossUcbOptions& options) {
  detail::require(options.decay > 0.0 && options.decay <= 1.0, "loss-ucb", "decay", "in (0, 1]",
                  options.decay);
  detail::require(options.confidence >= 0.0 && options.confidence < 1e6, "loss-ucb", "confidence",
                  "in [0, 1e6)", options.confidence);
  return std::make_unique<LossUcb>(num_samples, options);
}

}  // namespace tamis
