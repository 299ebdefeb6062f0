// Per-sample quality from a scalar loss: what backward() computes for every output anyway.
#include <algorithm>
#include <cmath>
#include <span>

#include "core/scores/score_array.h"
#include "core/scores/scores.h"

namespace tamis::detail {

namespace {

class OutputGradient final : public FloatScorer {
 public:
  OutputGradient(std::size_t num_samples, const OptionMap& options)
      : FloatScorer("output-gradient", options, num_samples),
        power_(option("power")),
        alpha_(option("alpha")) {}

  LossKind needs() const override { return LossKind::output_gradients; }

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
    powers_.resize(norms.size());
    double sum = 0.0;
    for (std::size_t k = 0; k < norms.size(); ++k) {
      // Divided by the largest, no power overflows and the largest does not vanish.
      powers_[k] = raised(static_cast<double>(norms[k]) / static_cast<double>(largest));
      sum += powers_[k];
    }
    // As a float, which is what ranks exchange and recordings keep.
    const double loss = static_cast<double>(static_cast<float>(mean_loss));
    const double factor = loss * static_cast<double>(norms.size()) / sum;
    shares_.resize(norms.size());
    bool fits = true;
    for (std::size_t k = 0; k < norms.size(); ++k) {
      shares_[k] = static_cast<float>(factor * powers_[k]);
      fits &= std::isfinite(shares_[k]);
    }
    return fits;
  }

  double power_;
  double alpha_;
  std::vector<double> powers_;
  std::vector<float> shares_;
};

}  // namespace

std::unique_ptr<Scorer> make_output_gradient(std::size_t num_samples, const OptionMap& options) {
  return std::make_unique<OutputGradient>(num_samples, options);
}

}  // namespace tamis::detail
