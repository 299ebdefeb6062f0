#include "training/trainer/forgetting_events.h"

#include <algorithm>

namespace tamis::training {

std::vector<float> ForgettingEvents::scores() const {
  const std::uint32_t most =
      counts_.empty() ? 0 : *std::max_element(counts_.begin(), counts_.end());
  std::vector<float> scores(counts_.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    scores[i] = static_cast<float>(was_learned(i) ? counts_[i] : most + 1);
  }
  return scores;
}

}  // namespace tamis::training
