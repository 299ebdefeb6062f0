// Methods as the commands that train know them: those of the registry, and fewer epochs of the full
// data, which is no way to prune but what every pruned run has to beat.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/method.h"
#include "training/trainer/run_config.h"

namespace tamis::training {

inline constexpr std::string_view kFewerEpochs = "fewer-epochs";

// parse_method(), and "fewer-epochs" with the option target_prune: the full data for the share 1 -
// target_prune of the epochs, rounded to whole ones. The learning rate goes through its whole
// schedule in these. Throws std::invalid_argument.
Method parse_trained_method(std::string_view text, const MethodOptions& options);

bool is_fewer_epochs(const Method& method);

// Throws std::invalid_argument as check_reachable() does.
void check_budget(const Method& method, std::uint64_t num_epochs);

// Sets the method, and with fewer-epochs the epochs that are left of config.training.epochs.
void choose_method(RunConfig& config, Method method);

// The rows that every comparison at an equal budget begins with: the full data, fewer epochs of
// them, a fresh random subset in every epoch, and the same with InfoBatch's annealing.
std::vector<std::string> budget_methods();

}  // namespace tamis::training
