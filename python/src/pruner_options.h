// A Pruner from keyword arguments, and these back.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "tamis/pruner.h"

namespace tamis::python {

using Numbers = std::map<std::string, double>;

// Pruner.__init__.
void construct(Pruner* self, std::size_t num_samples, std::uint64_t num_epochs,
               const std::string& policy, const Numbers& policy_options,
               const std::optional<std::string>& score, const Numbers& score_options,
               std::optional<double> delta, std::uint64_t seed, std::size_t homogeneous_batch_size,
               double min_per_class, nanobind::handle labels, std::optional<double> target_prune,
               const std::string& layout, const std::string& remainder, std::size_t threads,
               nanobind::object communicator);

// The same keys as the arguments. Requires: every default is filled in.
nanobind::dict options_as_dict(const PrunerOptions& options);

}  // namespace tamis::python
