// PrunerOptions from keyword arguments, and back.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "tamis/pruner.h"

namespace tamis::python {

PrunerOptions make_options(std::size_t num_samples, std::uint64_t num_epochs,
                           const std::string& policy, const OptionMap& policy_options,
                           const std::optional<std::string>& score, const OptionMap& score_options,
                           std::optional<double> delta, std::uint64_t seed,
                           std::size_t homogeneous_batch_size, double min_per_class,
                           const pybind11::object& labels, std::optional<double> target_prune);

// All of them by name, as options_as_dict() gives them; score and delta may be None.
PrunerOptions options_from_dict(const pybind11::dict& options);

// The same keys as the arguments. Requires: every default is filled in.
pybind11::dict options_as_dict(const PrunerOptions& options);

}  // namespace tamis::python
