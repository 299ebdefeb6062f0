// Per-sample quality from a scalar loss: what backward() computes for every output anyway.
#include <algorithm>
#include <cmath>
#include <span>

#include "base/check.h"
#include "core/scores/score_array.h"
#include "core/scores/scores.h"

namespace tamis::detail {

namespace {

class OutputGradient final : public FloatScorer {
 public:
  OutputGradient(std::size_t num_samples, const OptionMap& options)
      : FloatScorer("output-gradient", options, num_samples),
        power_(option("power")),
        is_cross_entropy_(option("cross_entropy") == 1.0),
        alpha_(option("alpha")) {
    require(!is_cross_entropy_ || power_ == 1.0, "output-gradient", "power",
            "left at 1 with cross_entropy=1, which needs none", power_);
  }

  LossKind needs() const override { return LossKind::output_gradients; }
  int norm_order() const override { return is_cross_entropy_ ? 1 : 2; }

  bool observe(const Observation& observation) override {
    if (!share_out(observation.mean_loss, observation.norms)) return false;
    apply(observation, [&](float old, std::size_t k) {
      return old == old ? static_cast<float>(alpha_ * static_cast<double>(old) +
                                             (1.0 - alpha_) * static_cast<double>(shares_[k]))
                        : shares_[k];
    });
    return true;
  }

 private:
  // Of a norm relative to the largest one. pow() may round differently from one machine to the
  // next; the powers that are used most do not.
  double raised(double ratio) const {
    if (power_ == 1.0) return ratio;
    return power_ == 2.0 ? ratio * ratio : std::pow(ratio, power_);
  }

  // Sets shares_, one per row. False if there is nothing to share out by, or a share does not fit a
  // float.
  bool share_out(double mean_loss, std::span<const float> norms) {
    float largest = 0.0F;
    for (const float norm : norms) {
      if (!std::isfinite(norm) || norm < 0.0F) return false;
      largest = std::max(largest, norm);
    }
    if (largest == 0.0F) return false;
    ratios_.resize(norms.size());
    for (std::size_t k = 0; k < norms.size(); ++k) {
      // Divided by the largest, no power overflows and the largest does not vanish.
      ratios_[k] = static_cast<double>(norms[k]) / static_cast<double>(largest);
    }
    shares_.resize(norms.size());
    // As a float, which is what ranks exchange and recordings keep.
    const double loss = static_cast<double>(static_cast<float>(mean_loss));
    return is_cross_entropy_ ? share_by_probability(loss) : share_by_power(loss);
  }

  bool share_by_power(double mean_loss) {
    double sum = 0.0;
    for (double& ratio : ratios_) {
      ratio = raised(ratio);
      sum += ratio;
    }
    const double factor = mean_loss * static_cast<double>(ratios_.size()) / sum;
    bool fits = true;
    for (std::size_t k = 0; k < ratios_.size(); ++k) {
      shares_[k] = static_cast<float>(factor * ratios_[k]);
      fits &= std::isfinite(shares_[k]);
    }
    return fits;
  }

  // The gradient of a cross-entropy by the logits is softmax - onehot, whose magnitudes add up to
  // 2 (1 - p), p being the probability of the label. So 1 - p is the same multiple of every norm,
  // and the multiple is the one whose losses -log(p) have the mean that is known.
  bool share_by_probability(double mean_loss) {
    if (!(mean_loss > 0.0)) return false;
    // By the loss t of the sample with the largest norm: the mean rises with t, ever more slowly,
    // so that Newton's steps from below never go too far.
    double t = mean_loss;
    constexpr int kMostSteps = 100;
    for (int step = 0; step < kMostSteps; ++step) {
      const double left = std::exp(-t);
      double sum = 0.0;
      double slope = 0.0;
      for (const double ratio : ratios_) {
        const double p = 1.0 - ratio + ratio * left;
        sum -= std::log(p);
        slope += ratio * left / p;
      }
      const double missing = mean_loss * static_cast<double>(ratios_.size()) - sum;
      if (!(missing > 1e-12 * sum)) break;
      t += missing / slope;
    }
    const double left = std::exp(-t);
    bool fits = std::isfinite(t);
    for (std::size_t k = 0; k < ratios_.size(); ++k) {
      shares_[k] = static_cast<float>(-std::log(1.0 - ratios_[k] + ratios_[k] * left));
      fits &= std::isfinite(shares_[k]);
    }
    return fits;
  }

  double power_;
  bool is_cross_entropy_;
  double alpha_;
  std::vector<double> ratios_;
  std::vector<float> shares_;
};

}  // namespace

std::unique_ptr<Scorer> make_output_gradient(std::size_t num_samples, const OptionMap& options) {
  return std::make_unique<OutputGradient>(num_samples, options);
}

}  // namespace tamis::detail
