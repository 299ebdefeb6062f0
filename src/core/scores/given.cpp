// The scores of static methods, which are measured before a training and given to it.
#include "core/scores/score_array.h"
#include "core/scores/scores.h"

namespace tamis::detail {

namespace {

class Given final : public FloatScorer {
 public:
  using FloatScorer::FloatScorer;

  LossKind needs() const override { return LossKind::sample_losses; }

  bool observe(const Observation& observation) override {
    for (std::size_t k = 0; k < observation.indices.size(); ++k) {
      float& value = values()[observation.indices[k]];
      if (std::isnan(value)) value = observation.losses[k];
    }
    return true;
  }
};

}  // namespace

std::unique_ptr<Scorer> make_el2n(std::size_t num_samples, const OptionMap& options) {
  return std::make_unique<Given>("el2n", options, num_samples);
}

std::unique_ptr<Scorer> make_grand(std::size_t num_samples, const OptionMap& options) {
  return std::make_unique<Given>("grand", options, num_samples);
}

std::unique_ptr<Scorer> make_influence(std::size_t num_samples, const OptionMap& options) {
  return std::make_unique<Given>("influence", options, num_samples);
}

std::unique_ptr<Scorer> make_forgetting(std::size_t num_samples, const OptionMap& options) {
  return std::make_unique<Given>("forgetting", options, num_samples);
}

}  // namespace tamis::detail
