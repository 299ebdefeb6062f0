// ForgettingEvents: how often each sample was forgotten, right at one visit and wrong at the next
// (Toneva et al., An Empirical Study of Example Forgetting, 2019).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tamis::training {

class ForgettingEvents {
 public:
  explicit ForgettingEvents(std::size_t num_samples) : seen_(num_samples), counts_(num_samples) {}
  // What was saved; both have one value per sample.
  ForgettingEvents(std::vector<std::uint8_t> seen, std::vector<std::uint32_t> counts)
      : seen_(std::move(seen)), counts_(std::move(counts)) {}

  void visit(std::size_t sample, bool is_right) {
    std::uint8_t& seen = seen_[sample];
    if (is_right) {
      seen = kVisited | kRight | kLearned;
    } else {
      counts_[sample] += (seen & kRight) != 0 ? 1 : 0;
      seen = static_cast<std::uint8_t>((seen | kVisited) & ~kRight);
    }
  }

  std::uint32_t count(std::size_t sample) const { return counts_[sample]; }
  bool was_visited(std::size_t sample) const { return seen_[sample] != 0; }
  // Right at some visit.
  bool was_learned(std::size_t sample) const { return (seen_[sample] & kLearned) != 0; }
  // Counts; those that were never right have one more than the highest.
  std::vector<float> scores() const;

  // To be saved.
  const std::vector<std::uint8_t>& seen() const { return seen_; }
  const std::vector<std::uint32_t>& counts() const { return counts_; }

 private:
  // Bits of seen_.
  static constexpr std::uint8_t kVisited = 1;
  static constexpr std::uint8_t kRight = 2;  // at the last visit
  static constexpr std::uint8_t kLearned = 4;

  std::vector<std::uint8_t> seen_;
  std::vector<std::uint32_t> counts_;
};

}  // namespace tamis::training
