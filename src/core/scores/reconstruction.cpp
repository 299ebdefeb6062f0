// Multiplicative algebraic reconstruction (MART) of per-sample losses from batch means. The factors
// w_i = exp(v_i) are stored instead of v_i: the additive step on v_i is a multiplication by one
// number per batch, and no sample needs an exponential.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "core/scores/score_array.h"
#include "core/scores/scores.h"

namespace tamis::detail {

namespace {

// Keep the products with mu inside float's range; no training comes near them.
constexpr float kLeastFactor = 1e-30F;
constexpr float kGreatestFactor = 1e30F;

// Four sums, because each addition waits for the one before it.
double sum_of(std::span<const float> values) {
  std::array<double, 4> sums{};
  std::size_t k = 0;
  for (; k + sums.size() <= values.size(); k += sums.size()) {
    for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += static_cast<double>(values[k + j]);
  }
  for (; k < values.size(); ++k) sums[0] += static_cast<double>(values[k]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

class Reconstruction final : public MeanLossScorer<ArrayScorer<float>> {
 public:
  Reconstruction(std::size_t num_samples, const OptionMap& options)
      : MeanLossScorer("reconstruction", options, num_samples, "factors", kUnscored),
        step_(option("step")) {}

  bool observe(const Observation& observation) override {
    const double loss = observation.mean_loss;
    if (loss <= 0.0) return false;
    const auto indices = observation.indices;
    if (scratch().size() < indices.size()) scratch().resize(indices.size());
    float* const factors = values().data();
    float* const before = scratch().data();
    constexpr std::size_t kAhead = 16;  // values are fetched before they are needed
    for (std::size_t k = 0; k < indices.size(); ++k) {
      if (k + kAhead < indices.size()) __builtin_prefetch(factors + indices[k + kAhead], 1);
      const float factor = factors[indices[k]];
      before[k] = factor == factor ? factor : 1.0F;
    }
    const double sum = sum_of({before, indices.size()});
    // Factors of a state from elsewhere may lie beyond what this score makes.
    const double mean_factor = std::clamp<double>(sum / static_cast<double>(indices.size()),
                                                  kLeastFactor, kGreatestFactor);

    const double gain = std::max(0.01, 1.0 / (num_observations_ + 1.0));
    mean_loss_ += gain * (loss / mean_factor - mean_loss_);
    num_observations_ += 1.0;
    const auto correction = static_cast<float>(std::pow(loss / (mean_loss_ * mean_factor), step_));
    for (std::size_t k = 0; k < indices.size(); ++k) {
      factors[indices[k]] = std::clamp(before[k] * correction, kLeastFactor, kGreatestFactor);
    }
    return true;
  }

  std::span<const float> scores(Array<float>& scratch) const override {
    const Array<float>& factors = values();
    scratch = Array<float>(factors.size());
    const auto mean_loss = static_cast<float>(mean_loss_);
    for (std::size_t i = 0; i < factors.size(); ++i) {
      // NaN stays NaN. Below 0 are only factors of a state from elsewhere.
      constexpr float kMax = std::numeric_limits<float>::max();
      scratch[i] = std::clamp(mean_loss * factors[i], -kMax, kMax);
    }
    return {scratch.data(), scratch.size()};
  }
  // mean_loss_, mu: the mean of the ranks', each weighted by what it has observed. All ranks'
  // observations count, so the next ones move mu less.
  OptionMap agree(const OptionMap& before, std::span<const OptionMap> after) const override {
    const double count_before = before.at("num_observations");
    double count = 0.0;
    double sum = 0.0;
    for (const OptionMap& numbers : after) {
      const double added = numbers.at("num_observations") - count_before;
      count += added;
      sum += added * numbers.at("mean_loss");
    }
    if (count == 0.0) return before;
    return {{"mean_loss", sum / count}, {"num_observations", count_before + count}};
  }

 private:
  double step_;
};

}  // namespace

std::unique_ptr<Scorer> make_reconstruction(std::size_t num_samples, const OptionMap& options) {
  return std::make_unique<Reconstruction>(num_samples, options);
}

}  // namespace tamis::detail
