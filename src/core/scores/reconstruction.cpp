// Multiplicative algebraic reconstruction (MART) of per-sample losses from batch means. The factors
// w_i = exp(v_i) are stored instead of v_i: the additive step on v_i is a multiplication by one
// number per batch, and no sample needs an exponential.
#include "tamis/scores/reconstruction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "base/check.h"
#include "core/scores/score_array.h"

namespace tamis {

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

class Reconstruction final : public Scorer {
 public:
  Reconstruction(std::size_t num_samples, const ReconstructionOptions& options)
      : options_(options), factors_(num_samples, kUnscored) {}

  Spec spec() const override { return {"reconstruction", {{"step", options_.step}}}; }
  std::size_t num_samples() const override { return factors_.size(); }

  bool observe(const Observation& observation) override {
    const double loss = observation.mean_loss;
    if (loss <= 0.0) return false;
    const auto indices = observation.indices;
    if (scratch_.size() < indices.size()) scratch_.resize(indices.size());
    constexpr std::size_t kAhead = 16;  // a value is asked for before it is needed
    for (std::size_t k = 0; k < indices.size(); ++k) {
      if (k + kAhead < indices.size()) __builtin_prefetch(&factors_[indices[k + kAhead]], 1);
      const float factor = factors_[indices[k]];
      scratch_[k] = factor == factor ? factor : 1.0F;
    }
    const double sum = sum_of({scratch_.data(), indices.size()});
    const double mean_factor = sum / static_cast<double>(indices.size());

    const double gain = std::max(0.01, 1.0 / (num_observations_ + 1.0));
    mean_loss_ += gain * (loss / mean_factor - mean_loss_);
    num_observations_ += 1.0;
    const auto correction =
        static_cast<float>(std::pow(loss / (mean_loss_ * mean_factor), options_.step));
    for (std::size_t k = 0; k < indices.size(); ++k) {
      factors_[indices[k]] = std::clamp(scratch_[k] * correction, kLeastFactor, kGreatestFactor);
    }
    return true;
  }

  std::span<const float> scores(Array<float>& scratch) const override {
    scratch = Array<float>(factors_.size());
    const auto mean_loss = static_cast<float>(mean_loss_);
    for (std::size_t i = 0; i < factors_.size(); ++i) {
      // NaN stays NaN: it is not greater than the limit.
      const float score = mean_loss * factors_[i];
      scratch[i] =
          score > std::numeric_limits<float>::max() ? std::numeric_limits<float>::max() : score;
    }
    return {scratch.data(), scratch.size()};
  }
  std::vector<ScorerArray> arrays() override {
    return {detail::saved_array("factors", "F32", factors_)};
  }
  OptionMap numbers() const override {
    return {{"mean_loss", mean_loss_}, {"num_observations", num_observations_}};
  }
  void set_numbers(const OptionMap& numbers) override {
    mean_loss_ = numbers.at("mean_loss");
    num_observations_ = numbers.at("num_observations");
  }
  // mu: the mean of the ranks', each weighted by what it has observed. All ranks' observations
  // count, so the next ones move mu less.
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
  ReconstructionOptions options_;
  Array<float> factors_;
  double mean_loss_ = 0.0;  // mu
  double num_observations_ = 0.0;
  std::vector<float> scratch_;
};

}  // namespace

std::unique_ptr<Scorer> make_reconstruction(std::size_t num_samples,
                                            const ReconstructionOptions& options) {
  detail::require(options.step > 0.0 && options.step <= 1.0, "reconstruction", "step", "in (0, 1]",
                  options.step);
  return std::make_unique<Reconstruction>(num_samples, options);
}

}  // namespace tamis
