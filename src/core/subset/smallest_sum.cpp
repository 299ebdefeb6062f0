#include "tamis/smallest_sum.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/random/random.h"
#include "base/random/subset.h"

namespace tamis {

namespace {

// Operations that the greedy subset may take: about a second.
constexpr double kGreedyLimit = 2e9;
constexpr std::size_t kCandidates = 32;
constexpr std::size_t kMostRounds = 200;

struct Vectors {
  std::span<const float> all;
  std::size_t dimension = 0;

  std::size_t size() const { return all.size() / dimension; }
  const float* row(std::size_t i) const { return all.data() + i * dimension; }
  double dot(std::size_t i, std::size_t j) const {
    double sum = 0.0;
    const float* const a = row(i);
    const float* const b = row(j);
    for (std::size_t k = 0; k < dimension; ++k) {
      sum += static_cast<double>(a[k]) * static_cast<double>(b[k]);
    }
    return sum;
  }
  double dot(std::size_t i, const std::vector<double>& vector) const {
    double sum = 0.0;
    const float* const a = row(i);
    for (std::size_t k = 0; k < dimension; ++k) sum += static_cast<double>(a[k]) * vector[k];
    return sum;
  }
  void add(std::size_t i, double factor, std::vector<double>& vector) const {
    const float* const a = row(i);
    for (std::size_t k = 0; k < dimension; ++k) vector[k] += factor * static_cast<double>(a[k]);
  }
};

double squared_norm(const std::vector<double>& vector) {
  return std::inner_product(vector.begin(), vector.end(), vector.begin(), 0.0);
}

std::vector<double> sum_of(const Vectors& vectors, const Bitmap& chosen) {
  std::vector<double> sum(vectors.dimension);
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    if (chosen.test(i)) vectors.add(i, 1.0, sum);
  }
  return sum;
}

// A sample that may change sides, and what that alone would add to the squared norm of the sum.
struct Candidate {
  std::size_t sample = 0;
  double change = 0.0;
};

class SubsetSearch {
 public:
  SubsetSearch(const Vectors& vectors, const std::vector<double>& squares)
      : vectors_(vectors), squares_(squares) {}

  Bitmap shortest(std::size_t count) const {
    std::vector<std::size_t> order(vectors_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                     [&](std::size_t a, std::size_t b) {
                       return squares_[a] != squares_[b] ? squares_[a] < squares_[b] : a < b;
                     });
    Bitmap chosen(vectors_.size());
    for (std::size_t k = 0; k < count; ++k) chosen.set(order[k]);
    return chosen;
  }

  // One after the other, each time the one that leaves the shortest sum.
  Bitmap greedy(std::size_t count) const {
    Bitmap chosen(vectors_.size());
    std::vector<double> products(vectors_.size());  // of each vector with the sum
    for (std::size_t k = 0; k < count; ++k) {
      std::size_t best = 0;
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < vectors_.size(); ++i) {
        const double change = 2.0 * products[i] + squares_[i];
        if (!chosen.test(i) && change < least) {
          least = change;
          best = i;
        }
      }
      chosen.set(best);
      for (std::size_t i = 0; i < vectors_.size(); ++i) products[i] += vectors_.dot(i, best);
    }
    return chosen;
  }

  // Exchanges a member for another sample as long as that shortens the sum.
  void improve(Bitmap& chosen) const {
    for (std::size_t round = 0; round < kMostRounds; ++round) {
      std::vector<double> sum = sum_of(vectors_, chosen);
      std::vector<Candidate> leaving;
      std::vector<Candidate> entering;
      for (std::size_t i = 0; i < vectors_.size(); ++i) {
        const double product = vectors_.dot(i, sum);
        if (chosen.test(i)) {
          leaving.push_back({i, squares_[i] - 2.0 * product});
        } else {
          entering.push_back({i, squares_[i] + 2.0 * product});
        }
      }
      keep_best(leaving);
      keep_best(entering);
      if (!exchange(leaving, entering, sum, chosen)) return;
    }
  }

 private:
  static void keep_best(std::vector<Candidate>& candidates) {
    const auto by_change = [](const Candidate& a, const Candidate& b) {
      return a.change != b.change ? a.change < b.change : a.sample < b.sample;
    };
    const std::size_t count = std::min(kCandidates, candidates.size());
    std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(count),
                      candidates.end(), by_change);
    candidates.resize(count);
  }

  // Makes the best exchanges among the candidates; false if there was none.
  bool exchange(std::vector<Candidate>& leaving, std::vector<Candidate>& entering,
                std::vector<double>& sum, Bitmap& chosen) const {
    bool is_better = false;
    while (!leaving.empty() && !entering.empty()) {
      std::size_t out = 0;
      std::size_t in = 0;
      double least = -1e-12 * squared_norm(sum);
      bool is_found = false;
      for (std::size_t a = 0; a < leaving.size(); ++a) {
        for (std::size_t b = 0; b < entering.size(); ++b) {
          const double change = leaving[a].change + entering[b].change -
                                2.0 * vectors_.dot(leaving[a].sample, entering[b].sample);
          if (change < least) {
            least = change;
            out = a;
            in = b;
            is_found = true;
          }
        }
      }
      if (!is_found) return is_better;
      chosen.clear(leaving[out].sample);
      chosen.set(entering[in].sample);
      vectors_.add(leaving[out].sample, -1.0, sum);
      vectors_.add(entering[in].sample, 1.0, sum);
      leaving.erase(leaving.begin() + static_cast<std::ptrdiff_t>(out));
      entering.erase(entering.begin() + static_cast<std::ptrdiff_t>(in));
      for (Candidate& one : leaving) {
        one.change = squares_[one.sample] - 2.0 * vectors_.dot(one.sample, sum);
      }
      for (Candidate& one : entering) {
        one.change = squares_[one.sample] + 2.0 * vectors_.dot(one.sample, sum);
      }
      is_better = true;
    }
    return is_better;
  }

  const Vectors& vectors_;
  const std::vector<double>& squares_;
};

}  // namespace

double sum_norm(std::span<const float> vectors, std::size_t dimension, const Bitmap& chosen) {
  return std::sqrt(squared_norm(sum_of({vectors, dimension}, chosen)));
}

Bitmap choose_smallest_sum(std::span<const float> vectors, std::size_t dimension, std::size_t count,
                           std::uint64_t seed) {
  detail::require(dimension >= 1, "choose_smallest_sum", "dimension", "at least 1", dimension);
  detail::require(vectors.size() % dimension == 0, "choose_smallest_sum", "number of floats",
                  detail::concat("a multiple of the dimension (", dimension, ")"), vectors.size());
  const Vectors all{vectors, dimension};
  detail::require(count <= all.size(), "choose_smallest_sum", "count",
                  detail::concat("at most the number of vectors (", all.size(), ")"), count);
  std::vector<double> squares(all.size());
  for (std::size_t i = 0; i < squares.size(); ++i) squares[i] = all.dot(i, i);
  const SubsetSearch search(all, squares);
  detail::RandomStream random(seed, 0, detail::Purpose::selection);
  std::vector<Bitmap> starts = {search.shortest(count), detail::choose(all.size(), count, random)};
  const double cost = static_cast<double>(count) * static_cast<double>(vectors.size());
  if (cost <= kGreedyLimit) starts.push_back(search.greedy(count));
  Bitmap* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (Bitmap& start : starts) {
    search.improve(start);
    const double norm = sum_norm(vectors, dimension, start);
    if (norm < least) {
      least = norm;
      best = &start;
    }
  }
  detail::require(best != nullptr, "choose_smallest_sum", "vectors", "finite", "one that is not");
  return std::move(*best);
}

}  // namespace tamis
