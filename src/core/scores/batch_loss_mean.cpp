#include <limits>

#include "core/scores/score_array.h"
#include "core/scores/scores.h"

namespace tamis::detail {

namespace {

constexpr std::uint32_t kFull = std::numeric_limits<std::uint32_t>::max();

class BatchLossMean final : public MeanLossScorer<FloatScorer> {
 public:
  explicit BatchLossMean(std::size_t num_samples)
      : MeanLossScorer("batch-loss-mean", {}, num_samples), visits_(num_samples, 0) {}

  bool observe(const Observation& observation) override {
    const double loss = observation.mean_loss;
    if (loss <= 0.0) return false;
    num_observations_ += 1.0;
    mean_loss_ += (loss - mean_loss_) / num_observations_;
    const double excess = loss / mean_loss_ - 1.0;
    // First the counts, so that an index that stands twice counts one visit.
    if (counts_.size() < observation.indices.size()) counts_.resize(observation.indices.size());
    apply_once(observation, visits_, visits_scratch_, [&](std::uint32_t old, std::size_t k) {
      // Full counts stay: the next one would be 0.
      return counts_[k] = old + static_cast<std::uint32_t>(old != kFull);
    });
    apply(observation, [&](float old, std::size_t k) {
      const double before = old == old ? static_cast<double>(old) : 0.0;
      return static_cast<float>(before + (excess - before) / counts_[k]);
    });
    return true;
  }

  std::vector<ScorerArray> arrays() override {
    auto arrays = FloatScorer::arrays();
    arrays.push_back(saved_array("visits", "U32", visits_));
    return arrays;
  }
  // The mean of all losses that any rank has seen; what was there before counts once.
  OptionMap agree(const OptionMap& before, std::span<const OptionMap> after) const override {
    const auto count_of = [](const OptionMap& numbers) { return numbers.at("num_observations"); };
    const double mean_before = before.at("mean_loss");
    double count = count_of(before);
    double excess = 0.0;
    for (const OptionMap& numbers : after) {
      count += count_of(numbers) - count_of(before);
      excess += count_of(numbers) * (numbers.at("mean_loss") - mean_before);
    }
    const double mean = count > 0.0 ? mean_before + excess / count : mean_before;
    return {{"mean_loss", mean}, {"num_observations", count}};
  }

 private:
  Array<std::uint32_t> visits_;
  std::vector<std::uint32_t> visits_scratch_;
  std::vector<std::uint32_t> counts_;
};

}  // namespace

std::unique_ptr<Scorer> make_batch_loss_mean(std::size_t num_samples, const OptionMap&) {
  return std::make_unique<BatchLossMean>(num_samples);
}

}  // namespace tamis::detail
