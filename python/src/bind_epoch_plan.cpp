// EpochPlan for Python: the samples of one epoch as numpy arrays.
#include <pybind11/stl.h>

#include <memory>

#include "arrays.h"
#include "module.h"
#include "tamis/epoch_plan.h"

namespace tamis::python {

namespace {

py::array_t<bool> kept(const EpochPlan& plan) {
  py::array_t<bool> out(static_cast<py::ssize_t>(plan.num_samples()));
  bool* const data = out.mutable_data();
  for (std::size_t i = 0; i < plan.num_samples(); ++i) data[i] = plan.selection().kept.test(i);
  return out;
}

py::array_t<float> weights(const EpochPlan& plan) {
  py::array_t<float> out(static_cast<py::ssize_t>(plan.num_samples()));
  float* const data = out.mutable_data();
  for (std::size_t i = 0; i < plan.num_samples(); ++i) data[i] = plan.weight(i);
  return out;
}

// How the policy chose; only what applies to it.
py::dict report(const EpochPlan& plan) {
  const SelectionReport& from = plan.selection().report;
  py::dict out;
  if (from.threshold) out["threshold"] = *from.threshold;
  if (from.num_below) out["num_below"] = *from.num_below;
  if (from.num_kept_of_below) out["num_kept_of_below"] = *from.num_kept_of_below;
  if (!from.groups.empty()) {
    py::list groups;
    for (const ScoreGroup& group : from.groups) {
      py::dict entry;
      entry["size"] = group.size;
      entry["low"] = group.low;
      entry["high"] = group.high;
      entry["center"] = group.center;
      groups.append(entry);
    }
    out["groups"] = groups;
  }
  if (from.window_begin) out["window_begin"] = *from.window_begin;
  if (from.window_end) out["window_end"] = *from.window_end;
  if (from.within_group_sum_of_squares) {
    out["within_group_sum_of_squares"] = *from.within_group_sum_of_squares;
  }
  if (from.num_restored) out["num_restored"] = *from.num_restored;
  if (from.prune_ratio) out["prune_ratio"] = *from.prune_ratio;
  if (from.lowest_reachable) out["lowest_reachable"] = *from.lowest_reachable;
  if (from.highest_reachable) out["highest_reachable"] = *from.highest_reachable;
  return out;
}

}  // namespace

void bind_epoch_plan(py::module_& module) {
  py::class_<EpochPlan, std::shared_ptr<EpochPlan>>(
      module, "EpochPlan", "The samples of one epoch in training order, with their weights.")
      .def("__len__", &EpochPlan::size)
      .def_property_readonly("epoch", &EpochPlan::epoch)
      .def_property_readonly("pruning", &EpochPlan::pruning,
                             "True in an epoch that the schedule prunes.")
      .def_property_readonly("num_samples", &EpochPlan::num_samples)
      .def_property_readonly("num_pruned", &EpochPlan::num_pruned)
      .def_property_readonly(
          "order",
          [](const py::object& self) {
            return view_as_numpy(self.cast<const EpochPlan&>().order(), self);
          },
          "The samples in training order: a read-only uint32 view, not a copy.")
      .def_property_readonly("kept", &kept, "One bool per sample of the data set.")
      .def_property_readonly("weights", &weights,
                             "What the loss of each sample of the data set is multiplied by.")
      .def_property_readonly("report", &report, "How the policy chose; only what applies to it.")
      .def("num_batches", &EpochPlan::num_batches, py::arg("batch_size"),
           py::arg("drop_last") = false)
      .def(
          "mean_weight",
          [](const EpochPlan& plan, const py::object& indices) {
            return Indices(indices).visit([&](auto span) { return plan.mean_weight(span); });
          },
          py::arg("indices"), "What the mean loss of a batch of these samples is multiplied by.");
}

}  // namespace tamis::python
