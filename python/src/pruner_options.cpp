#include "pruner_options.h"

#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "arrays.h"

namespace tamis::python {

namespace {

std::vector<std::int32_t> to_labels(const py::object& object) {
  if (object.is_none()) return {};
  return Indices(object).visit([](auto span) {
    std::vector<std::int32_t> labels;
    labels.reserve(span.size());
    for (const auto label : span) {
      if (static_cast<SampleIndex>(static_cast<std::int32_t>(label)) !=
          static_cast<SampleIndex>(label)) {
        throw py::value_error("Pruner: labels must be 32-bit integers, got " +
                              std::to_string(label));
      }
      labels.push_back(static_cast<std::int32_t>(label));
    }
    return labels;
  });
}

}  // namespace

PrunerOptions make_options(std::size_t num_samples, std::uint64_t num_epochs,
                           const std::string& policy, const OptionMap& policy_options,
                           const std::optional<std::string>& score, const OptionMap& score_options,
                           std::optional<double> delta, std::uint64_t seed,
                           std::size_t homogeneous_batch_size, double min_per_class,
                           const py::object& labels, std::optional<double> target_prune) {
  PrunerOptions options{.num_samples = num_samples,
                        .num_epochs = num_epochs,
                        .policy = {policy, policy_options},
                        .delta = delta,
                        .seed = seed,
                        .homogeneous_batch_size = homogeneous_batch_size,
                        .min_per_class = min_per_class,
                        .labels = to_labels(labels),
                        .target_prune = target_prune};
  if (score) options.score = Spec{*score, score_options};
  return options;
}

py::dict options_as_dict(const PrunerOptions& options) {
  py::dict out;
  out["num_samples"] = options.num_samples;
  out["num_epochs"] = options.num_epochs;
  out["policy"] = options.policy.name;
  out["policy_options"] = options.policy.options;
  out["score"] = options.score->name;
  out["score_options"] = options.score->options;
  out["delta"] = *options.delta;
  out["seed"] = options.seed;
  out["homogeneous_batch_size"] = options.homogeneous_batch_size;
  out["min_per_class"] = options.min_per_class;
  out["labels"] = py::none();
  if (!options.labels.empty()) out["labels"] = to_numpy(std::vector(options.labels));
  out["target_prune"] = options.target_prune;
  return out;
}

PrunerOptions options_from_dict(const py::dict& options) {
  return make_options(
      options["num_samples"].cast<std::size_t>(), options["num_epochs"].cast<std::uint64_t>(),
      options["policy"].cast<std::string>(), options["policy_options"].cast<OptionMap>(),
      options["score"].cast<std::optional<std::string>>(),
      options["score_options"].cast<OptionMap>(), options["delta"].cast<std::optional<double>>(),
      options["seed"].cast<std::uint64_t>(), options["homogeneous_batch_size"].cast<std::size_t>(),
      options["min_per_class"].cast<double>(), options["labels"],
      options["target_prune"].cast<std::optional<double>>());
}

}  // namespace tamis::python
