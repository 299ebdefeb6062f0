// The average behind epsilon-greedy in Raju et al., Accelerating Deep Learning with Dynamic Data
// Pruning. The paper's constants could not be confirmed; the default is ours.
#include "tamis/scores/loss_average.h"

#include "base/check.h"
#include "core/scores/score_array.h"

namespace tamis {

namespace {

class LossAverage final : public Scorer {
 public:
  LossAverage(std::size_t num_samples, const LossAverageOptions& options)
      : options_(options), scores_(num_samples, kUnscored) {}

  Spec spec() const override { return {"loss-average", {{"decay", options_.decay}}}; }
  std::size_t num_samples() const override { return scores_.size(); }
  LossKind prefers() const override { return LossKind::sample_losses; }

  bool observe(const Observation& observation) override {
    const double decay = options_.decay;
    detail::apply_once(observation, scores_, scratch_, [&](float old, std::size_t k) {
      const double loss = observation.loss(k);
      return static_cast<float>(old == old ? (1.0 - decay) * static_cast<double>(old) + decay * loss
                                           : loss);
    });
    return true;
  }

  std::span<const float> scores(Array<float>&) const override {
    return {scores_.data(), scores_.size()};
  }
  std::vector<ScorerArray> arrays() override {
    return {detail::saved_array("scores", "F32", scores_)};
  }

 private:
  LossAverageOptions options_;
  Array<float> scores_;
  std::vector<float> scratch_;
};

}  // namespace

std::unique_ptr<Scorer> make_loss_average(std::size_t num_samples,
                                          const LossAverageOptions& options) {
  detail::require(options.decay > 0.0 && options.decay <= 1.0, "loss-average", "decay", "in (0, 1]",
                  options.decay);
  return std::make_unique<LossAverage>(num_samples, options);
}

}  // namespace tamis
