// Zhou et al., Batch Loss Score for Dynamic Data Pruning, eq. 3. The authors' code starts every
// score at 0 and uses alpha = 0.9; the defaults here are the paper's.
#include "tamis/scores/batch_loss.h"

#include <cmath>

#include "base/check.h"
#include "core/scores/score_array.h"

namespace tamis {

namespace {

class BatchLoss final : public Scorer {
 public:
  BatchLoss(std::size_t num_samples, const BatchLossOptions& options)
      : options_(options), scores_(num_samples, kUnscored), initial_(options.initial_score) {}

  Spec spec() const override {
    return {"batch-loss", {{"alpha", options_.alpha}, {"initial_score", options_.initial_score}}};
  }
  std::size_t num_samples() const override { return scores_.size(); }

  bool observe(const Observation& observation) override {
    if (std::isnan(initial_)) initial_ = observation.mean_loss;
    const double alpha = options_.alpha;
    const double gain = (1.0 - alpha) * observation.mean_loss;
    const auto first = static_cast<float>(initial_);
    detail::apply_once(observation, scores_, scratch_, [=](float old, std::size_t) {
      const float before = old == old ? old : first;
      return static_cast<float>(alpha * static_cast<double>(before) + gain);
    });
    return true;
  }

  std::span<const float> scores(Array<float>&) const override {
    return {scores_.data(), scores_.size()};
  }

  std::vector<ScorerArray> arrays() override {
    return {detail::saved_array("scores", "F32", scores_)};
  }
  OptionMap numbers() const override { return {{"initial", initial_}}; }
  void set_numbers(const OptionMap& numbers) override { initial_ = numbers.at("initial"); }
  // The loss of the first batch of the first rank that has seen one.
  OptionMap agree(const OptionMap&, std::span<const OptionMap> after) const override {
    for (const OptionMap& numbers : after) {
      if (!std::isnan(numbers.at("initial"))) return numbers;
    }
    return after[0];
  }

 private:
  BatchLossOptions options_;
  Array<float> scores_;
  double initial_;  // NaN until the first batch sets it
  std::vector<float> scratch_;
};

}  // namespace

std::unique_ptr<Scorer> make_batch_loss(std::size_t num_samples, const BatchLossOptions& options) {
  detail::require(options.alpha != 1.0, "batch-loss", "alpha",
                  "in [0, 1) (1 freezes the scores, so that nothing would ever be pruned)",
                  options.alpha);
  detail::require(options.alpha >= 0.0 && options.alpha < 1.0, "batch-loss", "alpha", "in [0, 1)",
                  options.alpha);
  detail::require(!std::isinf(options.initial_score), "batch-loss", "initial_score",
                  "a finite number or first-batch-loss", options.initial_score);
  return std::make_unique<BatchLoss>(num_samples, options);
}

}  // namespace tamis
