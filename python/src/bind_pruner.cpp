// Pruner for Python. Long calls release the GIL; one pruner is used from one thread at a time.
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "arrays.h"
#include "fast_step.h"
#include "module.h"
#include "planned_batch.h"
#include "pruner_options.h"
#include "tamis/pruner.h"

namespace tamis::python {

namespace {

using ReleaseGil = py::call_guard<py::gil_scoped_release>;

bool observe(Pruner& pruner, const py::object& indices, const py::object& loss) {
  const Losses losses(loss);
  return Indices(indices).visit([&](auto span) {
    return losses.is_mean() ? pruner.observe(span, losses.mean())
                            : pruner.observe(span, losses.values());
  });
}

bool observe_planned(Pruner& pruner, std::size_t begin, std::size_t count, const py::object& loss) {
  const Losses losses(loss);
  const auto batch = planned_batch(pruner, begin, count);
  return losses.is_mean() ? pruner.observe(batch, losses.mean())
                          : pruner.observe(batch, losses.values());
}

py::list planned_indices(const Pruner& pruner, std::size_t begin, std::size_t count) {
  const auto batch = planned_batch(pruner, begin, count);
  py::list out(batch.size());
  for (std::size_t k = 0; k < batch.size(); ++k) out[k] = py::int_(batch[k]);
  return out;
}

template <typename Index>
py::array_t<float> gather_weights(const EpochPlan& plan, std::span<const Index> indices) {
  plan.mean_weight(indices);  // checks the range
  py::array_t<float> out(static_cast<py::ssize_t>(indices.size()));
  float* const data = out.mutable_data();
  for (std::size_t k = 0; k < indices.size(); ++k) {
    data[k] = plan.weight(static_cast<std::size_t>(indices[k]));
  }
  return out;
}

py::bytes serialize(const Pruner& pruner) {
  std::vector<std::byte> bytes;
  {
    const py::gil_scoped_release release;
    bytes = pruner.serialize();
  }
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void deserialize(Pruner& pruner, const py::buffer& buffer) {
  const py::buffer_info info = buffer.request();
  if (info.itemsize != 1 || info.ndim != 1 || (info.size > 0 && info.strides[0] != 1)) {
    throw py::value_error("deserialize: state must be contiguous bytes");
  }
  const std::span bytes(static_cast<const std::byte*>(info.ptr),
                        static_cast<std::size_t>(info.size));
  const py::gil_scoped_release release;
  pruner.deserialize(bytes);
}

std::unique_ptr<Pruner> make_pruner(std::size_t num_samples, std::uint64_t num_epochs,
                                    const std::string& policy, const OptionMap& policy_options,
                                    const std::optional<std::string>& score,
                                    const OptionMap& score_options, std::optional<double> delta,
                                    std::uint64_t seed, std::size_t homogeneous_batch_size,
                                    double min_per_class, const py::object& labels,
                                    std::optional<double> target_prune) {
  return std::make_unique<Pruner>(
      make_options(num_samples, num_epochs, policy, policy_options, score, score_options, delta,
                   seed, homogeneous_batch_size, min_per_class, labels, target_prune));
}

py::tuple get_state(const Pruner& pruner) {
  return py::make_tuple(options_as_dict(pruner.options()), serialize(pruner));
}

std::unique_ptr<Pruner> set_state(const py::tuple& state) {
  auto pruner = std::make_unique<Pruner>(options_from_dict(state[0]));
  deserialize(*pruner, state[1]);
  return pruner;
}

void bind_planning(py::class_<Pruner>& pruner) {
  pruner
      .def(
          "start_epoch", [](Pruner& self, std::uint64_t epoch) { self.start_epoch(epoch); },
          py::arg("epoch"), ReleaseGil(),
          "Makes an epoch the running one, planned from the scores as they are now. Does nothing "
          "if it is running.")
      .def(
          "preview",
          [](const Pruner& self, std::uint64_t epoch) {
            return std::make_shared<EpochPlan>(self.preview(epoch));
          },
          py::arg("epoch"), ReleaseGil(),
          "The plan of an epoch as it would be if it started now. Changes nothing.")
      .def_property_readonly(
          "plan",
          [](const Pruner& self) {
            return self.plan() == nullptr ? nullptr : std::make_shared<EpochPlan>(*self.plan());
          },
          "A copy of the running epoch's plan; None before the first start_epoch.")
      .def_property_readonly(
          "epoch",
          [](const Pruner& self) {
            return self.plan() == nullptr ? std::nullopt : std::optional(self.plan()->epoch());
          },
          "The running epoch; None before the first start_epoch.")
      .def_property_readonly(
          "plan_size",
          [](const Pruner& self) { return self.plan() == nullptr ? 0 : self.plan()->size(); },
          "Number of samples of the running plan; 0 if there is none.")
      .def("planned_indices", &planned_indices, py::arg("begin"), py::arg("count"),
           "Samples [begin, begin + count) of the running plan, fewer at its end.")
      .def_property("position", &Pruner::position, &Pruner::set_position,
                    "How many samples of the running plan have been trained on.")
      .def_property_readonly("progress", &Pruner::progress,
                             "Share of the run that is done, in [0, 1].")
      .def_property_readonly("pruned_share", &Pruner::pruned_share,
                             "Share of the run so far that was left out.");
}

void bind_observing(py::class_<Pruner>& pruner) {
  pruner
      .def("observe", &observe, py::arg("indices"), py::arg("loss"),
           "Books a loss, the batch's mean or one per sample, on these samples. Returns False, and "
           "counts it, if it is not finite or the score cannot use it.")
      .def("observe_planned", &observe_planned, py::arg("begin"), py::arg("count"), py::arg("loss"),
           "The same for samples [begin, begin + count) of the running plan.")
      .def_property_readonly(
          "step", &make_step_function,
          "step(begin, count, mean_loss, /): observe_planned, moves the position "
          "past the batch and returns the batch's mean weight.")
      .def(
          "mean_weight_planned",
          [](const Pruner& self, std::size_t begin, std::size_t count) {
            return running_plan(self).mean_weight(planned_batch(self, begin, count));
          },
          py::arg("begin"), py::arg("count"),
          "Mean weight of samples [begin, begin + count) of the running plan.")
      .def(
          "weights_planned",
          [](const Pruner& self, std::size_t begin, std::size_t count) {
            return gather_weights(running_plan(self), planned_batch(self, begin, count));
          },
          py::arg("begin"), py::arg("count"),
          "Weights of samples [begin, begin + count) of the running plan.")
      .def(
          "weights_of",
          [](const Pruner& self, const py::object& indices) {
            return Indices(indices).visit(
                [&](auto span) { return gather_weights(running_plan(self), span); });
          },
          py::arg("indices"), "Weights of these samples in the running epoch.")
      .def_property_readonly(
          "scores", [](const Pruner& self) { return to_numpy(self.scores()); },
          "One float32 per sample, NaN where unscored. A copy.")
      .def_property_readonly("num_scored", &Pruner::num_scored)
      .def_property_readonly("num_observations", &Pruner::num_observations)
      .def_property_readonly("num_skipped_observations", &Pruner::num_skipped_observations)
      .def_property_readonly(
          "needs_sample_losses",
          [](const Pruner& self) { return self.scorer().needs() == LossKind::sample_losses; },
          "True if the score can only work with one loss per sample.");
}

void bind_state(py::class_<Pruner>& pruner) {
  pruner
      .def("save", &Pruner::save, py::arg("path"), ReleaseGil(),
           "Writes the state as a safetensors file; after a failure the old file is still there.")
      .def("load", &Pruner::load, py::arg("path"), ReleaseGil(),
           "Reads a state. Raises RuntimeError, and keeps the present one, if it does not fit.")
      .def_static("from_file", &Pruner::from_file, py::arg("path"), ReleaseGil(),
                  "A pruner with the options and the state of a file.")
      .def("serialize", &serialize, "The state as bytes.")
      .def("deserialize", &deserialize, py::arg("state"),
           "Takes over a state of serialize(), given as anything with the buffer protocol.")
      .def(py::pickle(&get_state, &set_state));
}

}  // namespace

void bind_pruner(py::module_& module) {
  py::class_<Pruner> pruner(module, "Pruner",
                            "A score, a policy and a schedule, and the state of a run.");
  pruner
      .def(py::init(&make_pruner), py::arg("num_samples"), py::arg("num_epochs"), py::kw_only(),
           py::arg("policy") = "infobatch", py::arg("policy_options") = OptionMap{},
           py::arg("score") = py::none(), py::arg("score_options") = OptionMap{},
           py::arg("delta") = py::none(), py::arg("seed") = 0,
           py::arg("homogeneous_batch_size") = 0, py::arg("min_per_class") = 0.0,
           py::arg("labels") = py::none(), py::arg("target_prune") = py::none())
      .def_property_readonly(
          "options", [](const Pruner& self) { return options_as_dict(self.options()); },
          "Every option, defaults filled in.")
      .def_property_readonly("num_samples", &Pruner::num_samples)
      .def_property_readonly(
          "homogeneous_batch_size",
          [](const Pruner& self) { return self.options().homogeneous_batch_size; })
      .def_property_readonly("target_prune",
                             [](const Pruner& self) { return self.options().target_prune; })
      .def_property_readonly("num_epochs",
                             [](const Pruner& self) { return self.schedule().num_epochs; })
      .def_property_readonly(
          "num_pruned_epochs",
          [](const Pruner& self) { return self.schedule().num_pruned_epochs(); },
          "Epochs before this one are pruned; from it on they anneal.");
  bind_planning(pruner);
  bind_observing(pruner);
  bind_state(pruner);
  bind_recording(pruner);
}

}  // namespace tamis::python
