// EpochPlan for Python: the samples of one epoch as numpy arrays.
#include <nanobind/stl/optional.h>

#include "arrays.h"
#include "module.h"
#include "plan_weights.h"
#include "sample_ids.h"
#include "tamis/epoch_plan.h"

namespace tamis::python {

namespace {

nb::list samples(const EpochPlan& plan, std::size_t begin, std::size_t count,
                 SampleIndex base = 0) {
  std::vector<SampleIndex> indices(count);
  plan.copy_to(begin, indices);
  nb::list out;
  for (const SampleIndex index : indices) out.append(base + index);
  return out;
}

// One entry per sample of the data set, or of this rank's part.
template <typename T, typename Function>
NumpyArray<T> for_each_sample(const EpochPlan& plan, Function&& function) {
  const std::size_t size = plan.selection().kept.size();
  auto owned = std::make_unique<T[]>(size);
  for (std::size_t i = 0; i < size; ++i) owned[i] = function(plan.selection(), i);
  T* const data = owned.release();
  return NumpyArray<T>(data, {size},
                       nb::capsule(data, [](void* p) noexcept { delete[] static_cast<T*>(p); }));
}

bool is_kept(const Selection& selection, std::size_t i) { return selection.kept.test(i); }

float weight_of(const Selection& selection, std::size_t i) {
  const bool is_rescaled = !selection.rescaled.empty() && selection.rescaled.test(i);
  return is_rescaled ? selection.rescale : 1.0F;
}

// How the policy chose; only what applies to it.
nb::dict report(const EpochPlan& plan) {
  const SelectionReport& from = plan.report();
  nb::dict out;
  const auto set = [&](const char* name, const auto& value) {
    if (value) out[name] = *value;
  };
  set("threshold", from.threshold);
  set("num_below", from.num_below);
  set("num_kept_of_below", from.num_kept_of_below);
  if (!from.groups.empty()) {
    nb::list groups;
    for (const ScoreGroup& group : from.groups) {
      nb::dict entry;
      entry["size"] = group.size;
      entry["low"] = group.low;
      entry["high"] = group.high;
      entry["center"] = group.center;
      groups.append(entry);
    }
    out["groups"] = groups;
  }
  set("window_begin", from.window_begin);
  set("window_end", from.window_end);
  set("within_group_sum_of_squares", from.within_group_sum_of_squares);
  set("num_restored", from.num_restored);
  set("prune_ratio", from.prune_ratio);
  set("lowest_reachable", from.lowest_reachable);
  set("highest_reachable", from.highest_reachable);
  return out;
}

}  // namespace

nb::object weights_at(const EpochPlan& plan, std::size_t begin, std::size_t count) {
  plan.mean_weight(begin, count);  // checks the range
  std::vector<float> weights(count);
  for (std::size_t k = 0; k < count; ++k) weights[k] = plan.weight(begin + k);
  return nb::cast(to_numpy(std::move(weights)));
}

nb::object weights_of(const EpochPlan& plan, std::span<const SampleIndex> samples) {
  std::vector<float> weights;
  weights.reserve(samples.size());
  for (const SampleIndex sample : samples) weights.push_back(plan.weight_of(sample));
  return nb::cast(to_numpy(std::move(weights)));
}

void bind_epoch_plan(nb::module_& module) {
  module.attr("INDEX_BITS") = kIndexBits;
  nb::class_<EpochPlan>(
      module, "EpochPlan",
      "The samples of one epoch that this rank trains on, in order, with their weights.")
      .def("__len__", &EpochPlan::size)
      .def(
          "__getitem__",
          [](const EpochPlan& self, std::size_t j) {
            if (j >= self.size()) throw nb::index_error("EpochPlan: position past the end");
            return self.sample(j);
          },
          nb::arg("position"), "The sample at a position of this rank's order.")
      .def(
          "samples",
          [](const EpochPlan& self, std::size_t begin, std::size_t count) {
            return samples(self, begin, count);
          },
          nb::arg("begin"), nb::arg("count"),
          "Samples [begin, begin + count) of this rank's order, as a list.")
      .def(
          "ids",
          [](const EpochPlan& self, std::size_t begin, std::size_t count) {
            return samples(self, begin, count, id_base(self.epoch()));
          },
          nb::arg("begin"), nb::arg("count"),
          "The same as ids: the epoch above the lowest INDEX_BITS bits, which are the index.")
      .def("is_padding", &EpochPlan::is_padding, nb::arg("position"),
           "True if the sample is there to fill up, so that all ranks have equally many.")
      .def_prop_ro("epoch", &EpochPlan::epoch)
      .def_prop_ro("pruning", &EpochPlan::pruning, "True in an epoch that the schedule prunes.")
      .def_prop_ro("num_samples", &EpochPlan::num_samples, "Of the whole data set.")
      .def_prop_ro("num_selected", &EpochPlan::num_selected, "By all ranks.")
      .def_prop_ro("num_pruned", &EpochPlan::num_pruned)
      .def_prop_ro(
          "order",
          [](nb::pointer_and_handle<EpochPlan> self) {
            const auto order = self.p->order();
            return NumpyArray<const std::uint32_t>(order.data(), {order.size()}, self.h);
          },
          nb::rv_policy::automatic,
          "The samples of all ranks (sharded: of this rank's part, from its first sample) in "
          "training order: a read-only uint32 view, not a copy.")
      .def_prop_ro(
          "kept", [](const EpochPlan& self) { return for_each_sample<bool>(self, &is_kept); },
          nb::rv_policy::automatic,
          "One bool per sample of the data set (sharded: of this rank's part).")
      .def_prop_ro(
          "weights", [](const EpochPlan& self) { return for_each_sample<float>(self, &weight_of); },
          nb::rv_policy::automatic,
          "What the loss of each sample of the data set is multiplied by.")
      .def_prop_ro("report", &report, "How the policy chose; only what applies to it.")
      .def("num_batches", &EpochPlan::num_batches, nb::arg("batch_size"),
           nb::arg("drop_last") = false)
      .def("mean_weight", &EpochPlan::mean_weight, nb::arg("begin"), nb::arg("count"),
           "What the mean loss of samples [begin, begin + count) of the order is multiplied by.")
      .def("weights_at", &weights_at, nb::arg("begin"), nb::arg("count"))
      .def(
          "mean_weight_of",
          [](const EpochPlan& self, nb::handle samples) {
            return self.mean_weight_of(Indices(samples).span());
          },
          nb::arg("samples"), "The same for samples by their index in the data set.")
      .def(
          "weights_of",
          [](const EpochPlan& self, nb::handle samples) {
            const Indices indices(samples);
            return weights_of(self, indices.span());
          },
          nb::arg("samples"));
}

}  // namespace tamis::python
