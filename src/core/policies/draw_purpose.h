// The random stream of a policy's choice.
#pragma once

#include "base/random/random.h"
#include "tamis/score_view.h"

namespace tamis::detail {

inline Purpose purpose_of(const Draw& draw) {
  if (draw.number == 0) return Purpose::selection;
  if (draw.number == 1) return Purpose::exploration;
  return static_cast<Purpose>(static_cast<std::uint64_t>(Purpose::further_choices) + draw.number);
}

}  // namespace tamis::detail
