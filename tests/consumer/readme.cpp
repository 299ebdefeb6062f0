#include "readme.h"  // the first: it must do with what the README includes

#include <cstdio>

// The README's loop, where samples with a high index have a high loss: it must prune, and weight
// what it keeps.
bool readme_prunes() {
  constexpr std::size_t kSamples = 1000;
  constexpr std::size_t kEpochs = 200;
  std::size_t num_delivered = 0;
  double loss_sum = 0.0;
  double weighted_sum = 0.0;
  train_like_the_readme(
      kSamples,
      [&](const tamis::EpochPlan& plan, std::size_t begin, std::size_t count) {
        double sum = 0.0;
        for (std::size_t j = begin; j < begin + count; ++j)
          sum += static_cast<double>(plan.sample(j));
        num_delivered += count;
        loss_sum += sum / static_cast<double>(count);
        return sum / static_cast<double>(count);
      },
      [&](double weighted) { weighted_sum += weighted; });
  std::printf("README: %zu of %zu samples\n", num_delivered, kEpochs * kSamples);
  return num_delivered > kEpochs * kSamples / 2 && num_delivered < kEpochs * kSamples &&
         weighted_sum > loss_sum;
}
