// Sample loss: the per-sample loss at the last visit; what InfoBatch and SeTa use themselves.
#pragma once

#include <cstddef>
#include <memory>

#include "tamis/scorer.h"

namespace tamis {

// s_i = l_i. Needs one loss per sample.
std::unique_ptr<Scorer> make_sample_loss(std::size_t num_samples);

}  // namespace tamis
