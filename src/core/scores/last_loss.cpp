// The two scores without memory: they differ only in whose loss they keep.
#include "core/scores/score_array.h"
#include "core/scores/scores.h"

namespace tamis::detail {

namespace {

class LastLoss final : public FloatScorer {
 public:
  LastLoss(std::string name, std::size_t num_samples, LossKind kind)
      : FloatScorer(std::move(name), {}, num_samples), kind_(kind) {}

  LossKind needs() const override { return kind_; }

  bool observe(const Observation& observation) override {
    const auto mean_loss = static_cast<float>(observation.mean_loss);
    for (std::size_t k = 0; k < observation.indices.size(); ++k) {
      values()[observation.indices[k]] =
          kind_ == LossKind::sample_losses ? observation.losses[k] : mean_loss;
    }
    return true;
  }

 private:
  LossKind kind_;
};

}  // namespace

std::unique_ptr<Scorer> make_last_batch_loss(std::size_t num_samples, const OptionMap&) {
  return std::make_unique<LastLoss>("last-batch-loss", num_samples, LossKind::mean_loss);
}

std::unique_ptr<Scorer> make_sample_loss(std::size_t num_samples, const OptionMap&) {
  return std::make_unique<LastLoss>("sample-loss", num_samples, LossKind::sample_losses);
}

}  // namespace tamis::detail
