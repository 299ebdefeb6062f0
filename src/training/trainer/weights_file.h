// Weights and optimiser state as a safetensors file of our own container: data only, nothing in it
// is ever executed.
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <filesystem>

namespace tamis::training {

// Writes parameters and buffers as model.NAME, and what the optimiser keeps of a parameter as
// optimizer.NAME.KEY, after `step` steps. Complete or not at all. Throws std::runtime_error.
void save_weights(const std::filesystem::path& path, std::uint64_t step,
                  const torch::nn::Module& model, torch::optim::Optimizer& optimizer);

// Verified before anything changes. Throws std::runtime_error if the file is damaged, is not of
// this step, or does not belong to such a model and optimiser.
void load_weights(const std::filesystem::path& path, std::uint64_t step, torch::nn::Module& model,
                  torch::optim::Optimizer& optimizer);

}  // namespace tamis::training
