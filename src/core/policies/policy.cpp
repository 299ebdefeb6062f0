#include "tamis/policy.h"

#include <stdexcept>

#include "base/check.h"

namespace tamis {

Selection Policy::anneal(const PolicyInput& input) const {
  return Selection::all(input.scores.size());
}

Selection Policy::select_part(const PartInput&) const {
  throw std::invalid_argument(detail::concat(
      spec().name, ": cannot select from a part of the scores; use the replicated layout"));
}

Selection Policy::anneal_part(const PartInput& input) const {
  return Selection::all(input.local.scores.size());
}

}  // namespace tamis
