#include "program/analyze/loss_landscape.h"

#include <cmath>
#include <numeric>

namespace tamis::program {

namespace {

constexpr float kDifficultySpread = 0.8F;  // standard deviation of the logarithm
constexpr float kNoiseSpread = 0.25F;

// SplitMix64's finaliser.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

// Close to a standard normal: the sum of four uniform 16-bit numbers, scaled. Its tails end at 3.5.
float normal(std::uint64_t key, std::uint64_t sample) {
  const std::uint64_t bits = mix(key + sample * 0x9e3779b97f4a7c15U);
  const std::uint64_t sum =
      (bits & 0xffffU) + ((bits >> 16U) & 0xffffU) + ((bits >> 32U) & 0xffffU) + (bits >> 48U);
  constexpr float kMean = 2.0F * 65535.0F;
  constexpr float kDeviation = 65536.0F * 0.57735027F;
  return (static_cast<float>(sum) - kMean) / kDeviation;
}

}  // namespace

LossLandscape::LossLandscape(std::size_t num_samples, std::uint64_t num_epochs, std::uint64_t seed)
    : num_epochs_(num_epochs), seed_(mix(seed + 1)), difficulty_(num_samples) {
  for (std::size_t i = 0; i < num_samples; ++i) {
    difficulty_[i] = std::exp(kDifficultySpread * normal(seed_, i));
  }
}

void LossLandscape::losses(std::span<const std::uint32_t> samples, std::uint64_t epoch,
                           std::span<float> out) const {
  const double progress = static_cast<double>(epoch) / static_cast<double>(num_epochs_);
  const auto level = static_cast<float>(0.1 + 0.9 * std::exp(-4.0 * progress));
  const std::uint64_t key = mix(seed_ + epoch + 1);
  for (std::size_t k = 0; k < samples.size(); ++k) {
    out[k] = level * difficulty_[samples[k]] * std::exp(kNoiseSpread * normal(key, samples[k]));
  }
}

double mean_of(std::span<const float> losses) {
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

namespace {

// Such that output-gradient gives the losses back.
std::vector<float> norms_of(std::span<const float> losses, int order) {
  std::vector<float> norms(losses.begin(), losses.end());
  if (order == 1) {
    for (float& norm : norms) norm = -std::expm1(-norm);  // 1 - p
  }
  return norms;
}

}  // namespace

void observe_batch(Pruner& pruner, std::size_t begin, std::span<const float> losses, double mean) {
  const LossKind needed = pruner.scorer().needs();
  if (needed == LossKind::sample_losses) {
    pruner.observe(begin, losses);
  } else if (needed == LossKind::output_gradients) {
    pruner.observe(begin, mean, norms_of(losses, pruner.scorer().norm_order()));
  } else {
    pruner.observe(begin, losses.size(), mean);
  }
}

}  // namespace tamis::program
