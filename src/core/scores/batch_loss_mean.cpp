#include "tamis/scores/batch_loss_mean.h"

#include "core/scores/score_array.h"

namespace tamis {

namespace {

class BatchLossMean final : public Scorer {
 public:
  explicit BatchLossMean(std::size_t num_samples)
      : scores_(num_samples, kUnscored), visits_(num_samples, 0) {}

  Spec spec() const override { return {"batch-loss-mean"}; }
  std::size_t num_samples() const override { return scores_.size(); }

  bool observe(const Observation& observation) override {
    const double loss = observation.mean_loss;
    if (loss <= 0.0) return false;
    num_observations_ += 1.0;
    mean_loss_ += (loss - mean_loss_) / num_observations_;
    const double excess = loss / mean_loss_ - 1.0;
    // First the counts, so that an index that stands twice counts one visit.
    if (counts_.size() < observation.indices.size()) counts_.resize(observation.indices.size());
    detail::apply_once(observation, visits_, visits_scratch_,
                       [&](std::uint32_t old, std::size_t k) { return counts_[k] = old + 1; });
    detail::apply_once(observation, scores_, scratch_, [&](float old, std::size_t k) {
      const double before = old == old ? static_cast<double>(old) : 0.0;
      return static_cast<float>(before + (excess - before) / counts_[k]);
    });
    return true;
  }

  std::span<const float> scores(Array<float>&) const override {
    return {scores_.data(), scores_.size()};
  }
  std::vector<ScorerArray> arrays() override {
    return {detail::saved_array("scores", "F32", scores_),
            detail::saved_array("visits", "U32", visits_)};
  }
  OptionMap numbers() const override {
    return {{"mean_loss", mean_loss_}, {"num_observations", num_observations_}};
  }
  void set_numbers(const OptionMap& numbers) override {
    mean_loss_ = numbers.at("mean_loss");
    num_observations_ = numbers.at("num_observations");
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
  Array<float> scores_;
  Array<std::uint32_t> visits_;
  double mean_loss_ = 0.0;
  double num_observations_ = 0.0;
  std::vector<float> scratch_;
  std::vector<std::uint32_t> visits_scratch_;
  std::vector<std::uint32_t> counts_;
};

}  // namespace

std::unique_ptr<Scorer> make_batch_loss_mean(std::size_t num_samples) {
  return std::make_unique<BatchLossMean>(num_samples);
}

}  // namespace tamis
