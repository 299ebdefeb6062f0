// A pruner's recording for Python.
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <vector>

#include "arrays.h"
#include "module.h"
#include "tamis/pruner.h"

namespace tamis::python {

namespace {

Recorder& recorder_of(Pruner& pruner) {
  if (pruner.recorder() == nullptr) {
    throw std::runtime_error("recording: record() must be called first");
  }
  return *pruner.recorder();
}

void record(Pruner& pruner, const std::filesystem::path& folder, std::size_t num_recorded,
            const py::object& samples, std::uint64_t seed) {
  RecorderOptions options{.num_recorded = num_recorded, .seed = seed};
  if (!samples.is_none()) {
    Indices(samples).visit([&](auto indices) {
      for (const auto index : indices) {
        if (static_cast<std::uint64_t>(index) >= pruner.num_samples()) {
          throw std::out_of_range("Recorder: samples must be below num_samples");
        }
        options.samples.push_back(static_cast<std::uint32_t>(index));
      }
    });
    if (options.samples.empty()) {
      throw std::invalid_argument("Recorder: samples must be at least one, got none");
    }
  }
  const py::gil_scoped_release release;
  pruner.record(folder, options);
}

void record_true_losses(Pruner& pruner, const py::object& losses,
                        std::optional<std::uint64_t> epoch) {
  const Losses values(losses);
  if (values.is_mean())
    throw std::invalid_argument("Recorder: losses must be an array, got a number");
  const std::uint64_t running = pruner.plan() == nullptr ? 0 : pruner.plan()->epoch();
  recorder_of(pruner).record_true_losses(epoch.value_or(running), values.values());
}

}  // namespace

void bind_recording(py::class_<Pruner>& pruner) {
  pruner
      .def("record", &record, py::arg("folder"), py::kw_only(), py::arg("num_recorded") = 10'000,
           py::arg("samples") = py::none(), py::arg("seed") = 0,
           "Records every observation from now on; a loaded run goes on with the one it had.")
      .def_property_readonly(
          "recorded_samples",
          [](const Pruner& self) -> py::object {
            if (self.recorder() == nullptr) return py::none();
            const auto samples = self.recorder()->samples();
            return to_numpy(std::vector<std::uint32_t>(samples.begin(), samples.end()));
          },
          "The samples whose own losses are recorded, ascending; None without a recording.")
      .def("record_true_losses", &record_true_losses, py::arg("losses"),
           py::arg("epoch") = py::none(),
           "What the model now loses on each of recorded_samples; of the running epoch.")
      .def(
          "flush_recording", [](Pruner& self) { recorder_of(self).flush(); },
          py::call_guard<py::gil_scoped_release>(), "Puts every recorded step on disk.");
}

}  // namespace tamis::python
