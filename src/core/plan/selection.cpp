#include "tamis/selection.h"

namespace tamis {

Selection Selection::all(std::size_t num_samples) { return {.kept = Bitmap(num_samples, true)}; }

}  // namespace tamis
