// The two scores without memory: they differ only in whose loss they keep.
#include "core/scores/score_array.h"
#include "tamis/scores/last_batch_loss.h"
#include "tamis/scores/sample_loss.h"

namespace tamis {

namespace {

class LastLoss final : public Scorer {
 public:
  LastLoss(std::size_t num_samples, LossKind kind) : kind_(kind), scores_(num_samples, kUnscored) {}

  Spec spec() const override {
    return {kind_ == LossKind::sample_losses ? "sample-loss" : "last-batch-loss"};
  }
  std::size_t num_samples() const override { return scores_.size(); }
  LossKind needs() const override { return kind_; }

  bool observe(const Observation& observation) override {
    const auto mean_loss = static_cast<float>(observation.mean_loss);
    for (std::size_t k = 0; k < observation.indices.size(); ++k) {
      scores_[observation.indices[k]] =
          kind_ == LossKind::sample_losses ? observation.losses[k] : mean_loss;
    }
    return true;
  }

  std::span<const float> scores(Array<float>&) const override {
    return {scores_.data(), scores_.size()};
  }
  std::vector<ScorerArray> arrays() override {
    return {detail::saved_array("scores", "F32", scores_)};
  }

 private:
  LossKind kind_;
  Array<float> scores_;
};

}  // namespace

std::unique_ptr<Scorer> make_last_batch_loss(std::size_t num_samples) {
  return std::make_unique<LastLoss>(num_samples, LossKind::mean_loss);
}

std::unique_ptr<Scorer> make_sample_loss(std::size_t num_samples) {
  return std::make_unique<LastLoss>(num_samples, LossKind::sample_losses);
}

}  // namespace tamis
