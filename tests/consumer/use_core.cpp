#include <tamis/tamis.h>

#include <algorithm>
#include <cstdio>

bool readme_prunes();

// Trains on nothing: samples with a high index have a high loss. InfoBatch must drop low ones only.
int main() {
  tamis::Pruner pruner({.num_samples = 1000,
                        .num_epochs = 10,
                        .policy = {"infobatch", {{"prune_ratio", 0.5}}},
                        .score = tamis::Spec{"batch-loss"}});
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    const tamis::EpochPlan& plan = pruner.start_epoch(epoch);
    for (std::size_t j = 0; j < plan.size(); ++j) {
      pruner.observe(j, 1, static_cast<double>(plan.sample(j)));
    }
  }
  const auto order = pruner.plan()->order();
  const auto hard = std::count_if(order.begin(), order.end(), [](auto i) { return i >= 500; });
  std::printf("%zu of 1000 samples, %ld of them hard\n", order.size(), static_cast<long>(hard));
  return order.size() == 750 && hard == 500 && readme_prunes() ? 0 : 1;
}
