// Last batch loss: the mean loss of the last batch a sample took part in; BLS without its average.
#pragma once

#include <cstddef>
#include <memory>

#include "tamis/scorer.h"

namespace tamis {

// s_i = L. Accepts a mean loss, or losses, which it averages.
std::unique_ptr<Scorer> make_last_batch_loss(std::size_t num_samples);

}  // namespace tamis
