// The batches of an epoch, as the trainer takes them from a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tamis/epoch_plan.h"
#include "training/data/batch.h"
#include "training/trainer/run_config.h"

namespace torch::nn {
class Module;
}

namespace tamis::training {

// Samples of the next batch when `left` are left of the epoch. A single last one joins the batch
// before it: batch norm has no statistics of one sample.
std::size_t batch_length(std::size_t left, std::size_t batch_size);

std::size_t num_steps(const EpochPlan& plan, std::size_t batch_size);

// With the random changes that the settings ask for.
Batch load_batch(const Dataset& data, std::span<const SampleIndex> samples,
                 const TrainingConfig& settings, std::uint64_t epoch);

// None instead of zeros: then the first step of a resumed run adds nothing to nothing, as the
// others.
void clear_gradients(const torch::nn::Module& model);

}  // namespace tamis::training
