// How several ranks share the scores and the samples of one run. See docs/distributed.md.
#pragma once

#include <cstdint>
#include <string_view>

namespace tamis {

// Who keeps which scores.
enum class Layout {
  automatic,   // replicated up to kMaxReplicated samples, sharded above
  replicated,  // every rank keeps all scores; ranks exchange one number per batch after an epoch
  sharded,     // a rank keeps the scores of its own part of the samples, and trains on these only;
               // ranks exchange statistics
  external,    // every rank keeps all scores and its plan is the whole epoch, which somebody else
               // cuts; losses are observed by index, and one rank may see any samples
};
inline constexpr std::uint64_t kMaxReplicated = 100'000'000;

// "automatic", "replicated" or "sharded": those that need nobody else. Throws
// std::invalid_argument for another name.
Layout parse_layout(std::string_view name);
std::string_view to_text(Layout layout);

// What happens where the samples of an epoch cannot be divided equally: some are used twice, or a
// few at the end of the (shuffled) order are left out of this epoch.
enum class Remainder { pad, drop };

}  // namespace tamis
