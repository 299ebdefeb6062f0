// The LossBook of Python: knows its pruner, and the weights of the epoch before.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "sample_ids.h"
#include "tamis/loss_book.h"

namespace tamis::python {

// What the weights of a batch put on its rows: weight over mean weight; empty if all are equal.
template <typename WeightAt>
std::vector<double> factors_of(std::size_t count, double mean_weight, const WeightAt& weight_at) {
  std::size_t num_equal = 1;
  while (num_equal < count && weight_at(num_equal) == weight_at(0)) ++num_equal;
  if (num_equal >= count) return {};
  std::vector<double> factors(count);
  for (std::size_t k = 0; k < count; ++k) {
    factors[k] = static_cast<double>(weight_at(k)) / mean_weight;
  }
  return factors;
}

class Book : public LossBook {
 public:
  explicit Book(Pruner& pruner) : LossBook(pruner), pruner_(pruner) {}
  const EpochPlan& plan() const { return *pruner_.plan(); }
  Pruner& pruner() { return pruner_; }

  // Before the next epoch starts: batches of the running one may still be under way.
  void keep_weights() {
    if (pruner_.plan() != nullptr) past_.emplace(plan());
  }
  // The weights of the epoch that the ids are of; null: those of the running plan. Throws
  // std::invalid_argument if they are not known any more.
  const PastWeights* past_weights(const BatchIds& ids) const {
    if (!ids.epoch() || *ids.epoch() == plan().epoch()) return nullptr;
    if (past_ && past_->epoch() == *ids.epoch()) return &*past_;
    throw std::invalid_argument(
        "update: this batch is of epoch " + std::to_string(*ids.epoch()) + ", but epoch " +
        std::to_string(plan().epoch()) +
        " is running, and weights are kept for one epoch only; update every batch before the "
        "second epoch after it, or give plain indices for the weights of the running epoch");
  }

  // A book that is given up observes nothing more; who holds a claim of it need not know.
  void give_up() { is_given_up_ = true; }
  bool settle(std::uint64_t claim, double mean_loss, std::span<const float> norms) {
    return !is_given_up_ && LossBook::settle({.number = claim}, mean_loss, norms);
  }

 private:
  bool is_given_up_ = false;
  Pruner& pruner_;
  std::optional<PastWeights> past_;
};

}  // namespace tamis::python
