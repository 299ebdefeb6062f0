// Zhou et al., Batch Loss Score for Dynamic Data Pruning, eq. 3. The authors' code starts every
// score at 0 and uses alpha = 0.9; the defaults here are the paper's.
#include <cmath>

#include "base/check.h"
#include "core/scores/score_array.h"
#include "core/scores/scores.h"

namespace tamis::detail {

namespace {

class BatchLoss final : public FloatScorer {
 public:
  BatchLoss(std::size_t num_samples, const OptionMap& options)
      : FloatScorer("batch-loss", options, num_samples),
        alpha_(option("alpha")),
        initial_(option("initial_score")) {
    require(alpha_ != 1.0, "batch-loss", "alpha",
            "in [0, 1) (1 freezes the scores, so that nothing would ever be pruned)", alpha_);
  }

  bool observe(const Observation& observation) override {
    if (std::isnan(initial_)) initial_ = observation.mean_loss;
    const double alpha = alpha_;
    const double gain = (1.0 - alpha) * observation.mean_loss;
    const auto first = static_cast<float>(initial_);
    apply(observation, [=](float old, std::size_t) {
      const float before = old == old ? old : first;
      return static_cast<float>(alpha * static_cast<double>(before) + gain);
    });
    return true;
  }

  OptionMap numbers() const override { return {{"initial", initial_}}; }
  void set_numbers(const OptionMap& numbers) override { initial_ = numbers.at("initial"); }
  bool is_possible(const OptionMap& numbers) const override {
    return !std::isinf(static_cast<float>(numbers.at("initial")));
  }
  // The loss of the first batch of the first rank that has seen one.
  OptionMap agree(const OptionMap&, std::span<const OptionMap> after) const override {
    for (const OptionMap& numbers : after) {
      if (!std::isnan(numbers.at("initial"))) return numbers;
    }
    return after[0];
  }

 private:
  double alpha_;
  double initial_;  // NaN until the first batch sets it
};

}  // namespace

std::unique_ptr<Scorer> make_batch_loss(std::size_t num_samples, const OptionMap& options) {
  return std::make_unique<BatchLoss>(num_samples, options);
}

}  // namespace tamis::detail
