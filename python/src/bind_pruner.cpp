// Pruner for Python. Long calls release the interpreter's lock; one pruner is used from one thread
// at a time.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>

#include "arrays.h"
#include "module.h"
#include "pruner_options.h"
#include "tamis/pruner.h"

namespace tamis::python {

namespace {

using ReleaseGil = nb::call_guard<nb::gil_scoped_release>;

void check_count(const char* what, std::size_t count, std::span<const float> values) {
  if (values.size() == count) return;
  throw std::invalid_argument("Pruner: " + std::string(what) + " must be as many as count (" +
                              std::to_string(count) + "), got " + std::to_string(values.size()));
}

bool observe(Pruner& pruner, std::size_t begin, std::size_t count, nb::handle loss,
             nb::handle norm) {
  const Losses losses(loss);
  const Norms norms(norm);
  if (norms.values()) check_count("norms", count, *norms.values());
  if (!losses.is_mean()) {
    check_count("losses", count, losses.values());
    return pruner.observe(begin, losses.values(), norms.values());
  }
  return norms.values() ? pruner.observe(begin, losses.mean(), *norms.values())
                        : pruner.observe(begin, count, losses.mean());
}

bool observe_samples(Pruner& pruner, nb::handle samples, nb::handle loss, nb::handle norm) {
  const Losses losses(loss);
  const Indices indices(samples);
  const Norms norms(norm);
  return losses.is_mean() ? pruner.observe(indices.span(), losses.mean(), norms.values())
                          : pruner.observe(indices.span(), losses.values(), norms.values());
}

const char* needs(const Pruner& pruner) {
  switch (pruner.scorer().needs()) {
    case LossKind::mean_loss:
    case LossKind::any_losses:
      return "mean-loss";
    case LossKind::sample_losses:
      return "sample-losses";
    case LossKind::output_gradients:
      return "output-gradients";
  }
  throw std::logic_error("Pruner: a kind of loss without a name");
}

nb::bytes serialize(Pruner& pruner) {
  std::vector<std::byte> bytes;
  {
    const nb::gil_scoped_release release;
    bytes = pruner.serialize();
  }
  return nb::bytes(bytes.data(), bytes.size());
}

void deserialize(Pruner& pruner, nb::handle state) {
  const Buffer buffer(state);
  const nb::gil_scoped_release release;
  pruner.deserialize(buffer.as<std::byte>());
}

nb::tuple get_state(Pruner& pruner) {
  if (pruner.communicator() != nullptr) {
    throw std::runtime_error("Pruner: a run of several ranks cannot be pickled; save it");
  }
  return nb::make_tuple(options_as_dict(pruner.options()), serialize(pruner));
}

void set_state(Pruner* self, const nb::tuple& state) {
  const nb::dict options = state[0];
  const nb::object made = nb::type<Pruner>()(**options);
  Pruner& pruner = nb::cast<Pruner&>(made);
  deserialize(pruner, state[1]);
  new (self) Pruner(std::move(pruner));
}

Recorder& recorder_of(Pruner& pruner) {
  if (pruner.recorder() == nullptr) {
    throw std::runtime_error("recording: record() must be called first");
  }
  return *pruner.recorder();
}

void record(Pruner& pruner, const std::filesystem::path& folder, std::size_t num_recorded,
            nb::handle samples, std::uint64_t seed) {
  RecorderOptions options{.num_recorded = num_recorded, .seed = seed};
  if (!samples.is_none()) {
    const Indices indices(samples);
    for (const SampleIndex index : indices.span()) {
      if (static_cast<std::uint64_t>(index) >= pruner.num_samples()) {
        throw std::out_of_range("Recorder: samples must be below num_samples");
      }
      options.samples.push_back(static_cast<std::uint32_t>(index));
    }
    if (options.samples.empty()) {
      throw std::invalid_argument("Recorder: samples must be at least one, got none");
    }
  }
  const nb::gil_scoped_release release;
  pruner.record(folder, options);
}

void record_true_losses(Pruner& pruner, nb::handle losses, std::optional<std::uint64_t> epoch) {
  const Losses values(losses);
  if (values.is_mean()) {
    throw std::invalid_argument("Recorder: losses must be an array, got a number");
  }
  const std::uint64_t running = pruner.plan() == nullptr ? 0 : pruner.plan()->epoch();
  recorder_of(pruner).record_true_losses(epoch.value_or(running), values.values());
}

void bind_planning(nb::class_<Pruner>& pruner) {
  pruner
      .def(
          "start_epoch", [](Pruner& self, std::uint64_t epoch) { self.start_epoch(epoch); },
          nb::arg("epoch"), ReleaseGil(),
          "Makes an epoch the running one, planned from the scores as they are now. Does nothing "
          "if it is running. Collective.")
      .def("preview", &Pruner::preview, nb::arg("epoch"), ReleaseGil(),
           "The plan of an epoch as it would be if it started now. Changes nothing. Collective in "
           "the sharded layout.")
      .def_prop_ro(
          "plan",
          [](const Pruner& self) {
            return self.plan() == nullptr ? std::nullopt : std::optional(*self.plan());
          },
          "The running epoch's plan; None before the first start_epoch.")
      .def_prop_ro(
          "epoch",
          [](const Pruner& self) {
            return self.plan() == nullptr ? std::nullopt : std::optional(self.plan()->epoch());
          },
          "The running epoch; None before the first start_epoch.")
      .def_prop_rw("position", &Pruner::position, &Pruner::set_position,
                   "How many samples of the running plan have been trained on.")
      .def_prop_ro("progress", &Pruner::progress, "Share of the run that is done, in [0, 1].")
      .def_prop_ro("pruned_share", &Pruner::pruned_share,
                   "Share of the run so far that was left out.")
      .def("exchange", &Pruner::exchange, ReleaseGil(),
           "Makes the losses so far part of the scores of all ranks. Collective.");
}

void bind_observing(nb::class_<Pruner>& pruner) {
  pruner
      .def("observe", &observe, nb::arg("begin"), nb::arg("count"), nb::arg("loss"),
           nb::arg("norms") = nb::none(),
           "Applies a loss, the batch's mean or one per sample, to samples [begin, begin + count) "
           "of the running plan. norms: of the loss's gradient by each output, if the outputs were "
           "watched. Returns False, and counts it, if it is not finite or the score cannot use it.")
      .def("observe_samples", &observe_samples, nb::arg("samples"), nb::arg("loss"),
           nb::arg("norms") = nb::none(), "The same for samples by their index in the data set.")
      .def_prop_ro(
          "scores", [](const Pruner& self) { return to_numpy(self.scores()); },
          nb::rv_policy::automatic, "One float32 per sample, NaN where unscored. A copy.")
      .def_prop_ro("num_scored", &Pruner::num_scored)
      .def_prop_ro("num_observations", &Pruner::num_observations)
      .def_prop_ro("num_skipped_observations", &Pruner::num_skipped_observations)
      .def_prop_ro("needs", &needs,
                   "What the score needs of a batch: mean-loss, sample-losses (one per sample) or "
                   "output-gradients (mean loss and one norm per sample).")
      .def_prop_ro(
          "norm_order", [](const Pruner& run) { return run.scorer().norm_order(); },
          "Which norm of the output gradients the score takes: 2, or 1, the sum of magnitudes.");
}

void bind_state(nb::class_<Pruner>& pruner) {
  pruner
      .def("save", &Pruner::save, nb::arg("path"), ReleaseGil(),
           "Writes the state as a safetensors file; after a failure the old file is still there. "
           "Collective.")
      .def("load", &Pruner::load, nb::arg("path"), ReleaseGil(),
           "Reads a state. Raises RuntimeError, and keeps the present one, if it does not fit. "
           "Collective.")
      .def_static("from_file", &Pruner::from_file, nb::arg("path"), ReleaseGil(),
                  "A pruner with the options and the state of a file.")
      .def("serialize", &serialize, "The state as bytes. Collective.")
      .def("deserialize", &deserialize, nb::arg("state"),
           "Takes over a state of serialize(), given as anything with the buffer protocol. "
           "Collective.")
      .def("__getstate__", &get_state)
      .def("__setstate__", &set_state);
}

void bind_recording(nb::class_<Pruner>& pruner) {
  pruner
      .def("record", &record, nb::arg("folder"), nb::kw_only(), nb::arg("num_recorded") = 10'000,
           nb::arg("samples") = nb::none(), nb::arg("seed") = 0,
           "Records every observation from now on; a loaded run goes on with the one it had. "
           "Collective; replicated, rank 0 records what all ranks observed.")
      .def_prop_ro(
          "recorded_samples",
          [](const Pruner& self) -> nb::object {
            if (self.recorder() == nullptr) return nb::none();
            const auto samples = self.recorder()->samples();
            return nb::cast(to_numpy(std::vector<std::uint32_t>(samples.begin(), samples.end())));
          },
          "The samples whose per-sample losses are recorded, ascending; None without a recording.")
      .def("record_true_losses", &record_true_losses, nb::arg("losses"),
           nb::arg("epoch") = nb::none(),
           "What the model now loses on each of recorded_samples; of the running epoch.")
      .def(
          "flush_recording", [](Pruner& self) { recorder_of(self).flush(); }, ReleaseGil(),
          "Puts every recorded step on disk.");
}

}  // namespace

void bind_pruner(nb::module_& module) {
  nb::class_<Pruner> pruner(module, "Pruner",
                            "A score, a policy and a schedule, and the state of a run.");
  pruner
      .def("__init__", &construct, nb::arg("num_samples"), nb::arg("num_epochs"), nb::kw_only(),
           nb::arg("policy") = "infobatch", nb::arg("policy_options") = Numbers{},
           nb::arg("score") = nb::none(), nb::arg("score_options") = Numbers{},
           nb::arg("delta") = nb::none(), nb::arg("seed") = 0,
           nb::arg("homogeneous_batch_size") = 0, nb::arg("min_per_class") = 0.0,
           nb::arg("labels") = nb::none(), nb::arg("target_prune") = nb::none(),
           nb::arg("layout") = "automatic", nb::arg("remainder") = "pad", nb::arg("threads") = 1,
           nb::arg("communicator") = nb::none())
      .def_prop_ro(
          "options", [](const Pruner& self) { return options_as_dict(self.options()); },
          "Every option, defaults filled in.")
      .def_prop_ro("num_samples", &Pruner::num_samples)
      .def_prop_ro("num_epochs", [](const Pruner& self) { return self.schedule().num_epochs; })
      .def_prop_ro(
          "num_pruned_epochs",
          [](const Pruner& self) { return self.schedule().num_pruned_epochs(); },
          "Epochs before this one are pruned; from it on they anneal.")
      .def_prop_ro("first_sample", &Pruner::first_sample,
                   "The first sample that this rank keeps a score of.")
      .def_prop_ro("num_kept", &Pruner::num_kept, "Samples that this rank keeps scores of.");
  bind_planning(pruner);
  bind_observing(pruner);
  bind_state(pruner);
  bind_recording(pruner);
}

}  // namespace tamis::python
