#include "pruner_options.h"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "python_communicator.h"

namespace tamis::python {

namespace {

std::vector<std::int32_t> to_labels(nb::handle object) {
  std::vector<std::int32_t> labels;
  if (object.is_none()) return labels;
  const Indices indices(object);
  labels.reserve(indices.span().size());
  for (const SampleIndex label : indices.span()) {
    labels.push_back(static_cast<std::int32_t>(label));
    if (labels.back() != label) {
      throw std::invalid_argument("Pruner: labels must be 32-bit integers, got " +
                                  std::to_string(label));
    }
  }
  return labels;
}

Remainder parse_remainder(const std::string& name) {
  if (name == "pad") return Remainder::pad;
  if (name == "drop") return Remainder::drop;
  throw std::invalid_argument("Pruner: remainder must be pad or drop, got " + name);
}

}  // namespace

void construct(Pruner* self, std::size_t num_samples, std::uint64_t num_epochs,
               const std::string& policy, const Numbers& policy_options,
               const std::optional<std::string>& score, const Numbers& score_options,
               std::optional<double> delta, std::uint64_t seed, std::size_t homogeneous_batch_size,
               double min_per_class, nb::handle labels, std::optional<double> target_prune,
               const std::string& layout, const std::string& remainder, std::size_t threads,
               nb::object communicator) {
  PrunerOptions options{.num_samples = num_samples,
                        .num_epochs = num_epochs,
                        .policy = {policy, {policy_options.begin(), policy_options.end()}},
                        .delta = delta,
                        .seed = seed,
                        .homogeneous_batch_size = homogeneous_batch_size,
                        .min_per_class = min_per_class,
                        .labels = to_labels(labels),
                        .target_prune = target_prune,
                        .layout = layout == "external" ? Layout::external : parse_layout(layout),
                        .remainder = parse_remainder(remainder),
                        .threads = threads};
  if (score) options.score = Spec{*score, {score_options.begin(), score_options.end()}};
  auto ranks = make_communicator(std::move(communicator));
  const nb::gil_scoped_release release;
  new (self) Pruner(options, std::move(ranks));
}

nb::dict options_as_dict(const PrunerOptions& options) {
  const auto numbers = [](const OptionMap& map) { return Numbers(map.begin(), map.end()); };
  nb::dict out;
  out["num_samples"] = options.num_samples;
  out["num_epochs"] = options.num_epochs;
  out["policy"] = options.policy.name;
  out["policy_options"] = numbers(options.policy.options);
  out["score"] = options.score->name;
  out["score_options"] = numbers(options.score->options);
  out["delta"] = *options.delta;
  out["seed"] = options.seed;
  out["homogeneous_batch_size"] = options.homogeneous_batch_size;
  out["min_per_class"] = options.min_per_class;
  out["labels"] = nb::none();
  if (!options.labels.empty()) out["labels"] = to_numpy(std::vector(options.labels));
  out["target_prune"] = options.target_prune;
  out["layout"] = std::string(to_text(options.layout));
  out["remainder"] = options.remainder == Remainder::pad ? "pad" : "drop";
  out["threads"] = options.threads;
  return out;
}

}  // namespace tamis::python
