#include "core/policies/part_statistics.h"

#include <algorithm>
#include <array>

#include "core/policies/exact_sum.h"
#include "core/policies/score_masks.h"
#include "tamis/communicator.h"

namespace tamis::detail {

PartStatistics part_statistics(const PartInput& input) {
  ExactSum sum;
  sum.add(input.local.scores);
  std::array<std::int64_t, ExactSum::kDigits + 1> numbers{};
  std::copy(sum.digits().begin(), sum.digits().end(), numbers.begin());
  numbers.back() = static_cast<std::int64_t>(scored(input.local.scores).count());
  input.communicator->all_reduce(numbers);

  std::copy(numbers.begin(), numbers.end() - 1, sum.digits().begin());
  const auto num_scored = static_cast<std::uint64_t>(numbers.back());
  if (num_scored == 0) return {};
  sum.carry();
  return {.num_scored = num_scored, .mean = sum.divided_by(num_scored)};
}

}  // namespace tamis::detail
