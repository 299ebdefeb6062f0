#include "winnow/selection.h"

namespace winnow {

Selection Selection::all(std::size_t num_samples) { return {.kept = Bitmap(num_samples, true)}; }

}  // namespace winnow
