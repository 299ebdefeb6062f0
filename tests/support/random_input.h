// Random but repeatable test input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "tamis/scorer.h"

namespace tamis::test {

// Gamma distributed scores, a given share of them unscored.
inline std::vector<float> random_scores(std::size_t n, std::uint64_t seed, double unscored = 0.0) {
  std::mt19937_64 random(seed);
  std::gamma_distribution<float> gamma(2.0F, 1.0F);
  std::bernoulli_distribution drop(unscored);
  std::vector<float> scores(n);
  for (float& score : scores) score = drop(random) ? kUnscored : gamma(random);
  return scores;
}

template <typename Index = std::int64_t>
std::vector<Index> iota_indices(std::size_t n) {
  std::vector<Index> indices(n);
  std::iota(indices.begin(), indices.end(), Index{0});
  return indices;
}

}  // namespace tamis::test
