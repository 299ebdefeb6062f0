// DistributedPruner for Python. Ranks are connected by two functions of the caller's: the module
// itself knows no torch. Where both have it, the interface is that of Pruner.
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "arrays.h"
#include "module.h"
#include "pruner_options.h"
#include "tamis/distributed_pruner.h"

namespace tamis::python {

namespace {

using ReleaseGil = py::call_guard<py::gil_scoped_release>;

// Called without the GIL.
class FunctionCommunicator final : public Communicator {
 public:
  FunctionCommunicator(std::size_t rank, std::size_t size, double time_limit, py::function reduce,
                       py::function gather)
      : rank_(rank),
        size_(size),
        time_limit_(static_cast<std::int64_t>(1000.0 * time_limit)),
        reduce_(std::move(reduce)),
        gather_(std::move(gather)) {}

  std::size_t rank() const override { return rank_; }
  std::size_t size() const override { return size_; }
  std::chrono::milliseconds time_limit() const override { return time_limit_; }

 private:
  void reduce(std::span<std::int64_t> numbers, Reduction reduction) override {
    const py::gil_scoped_acquire acquire;
    py::array_t<std::int64_t> array(static_cast<py::ssize_t>(numbers.size()), numbers.data());
    const char* const name = reduction == Reduction::sum       ? "sum"
                             : reduction == Reduction::minimum ? "min"
                                                               : "max";
    const py::array_t<std::int64_t> result = reduce_(array, name);
    std::copy_n(result.data(), numbers.size(), numbers.data());
  }

  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes) override {
    const py::gil_scoped_acquire acquire;
    const py::bytes own(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::vector<std::vector<std::byte>> all;
    for (const py::handle& item : gather_(own)) {
      const std::string_view text = py::cast<std::string_view>(item);
      const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
      all.emplace_back(begin, begin + text.size());
    }
    return all;
  }

  std::size_t rank_;
  std::size_t size_;
  std::chrono::milliseconds time_limit_;
  py::function reduce_;
  py::function gather_;
};

std::unique_ptr<DistributedPruner> make(const py::dict& settings, std::size_t rank,
                                        std::size_t size, py::function reduce, py::function gather,
                                        double time_limit, const std::string& layout,
                                        bool drop_remainder) {
  const auto communicator = std::make_shared<FunctionCommunicator>(
      rank, size, time_limit, std::move(reduce), std::move(gather));
  const PrunerOptions options = options_from_dict(settings);
  const DistributedOptions distribution{
      .layout = parse_layout(layout),
      .remainder = drop_remainder ? Remainder::drop : Remainder::pad};
  const py::gil_scoped_release release;
  return std::make_unique<DistributedPruner>(options, communicator, distribution);
}

const RankPlan& running_plan(const DistributedPruner& pruner) {
  if (pruner.plan() == nullptr) {
    throw std::runtime_error("DistributedPruner: no epoch is running; call start_epoch first");
  }
  return *pruner.plan();
}

// [begin, begin + count), cut off at the end of the rank's plan.
std::size_t clip(const DistributedPruner& pruner, std::size_t begin, std::size_t count) {
  const std::size_t size = running_plan(pruner).size();
  return std::min(count, size - std::min(begin, size));
}

std::vector<SampleIndex> to_samples(const py::object& indices) {
  return Indices(indices).visit(
      [](auto span) { return std::vector<SampleIndex>(span.begin(), span.end()); });
}

void observe(DistributedPruner& pruner, const py::object& indices, const py::object& loss) {
  const Losses losses(loss);
  const std::vector<SampleIndex> samples = to_samples(indices);
  if (losses.is_mean()) {
    pruner.observe_other(samples, losses.mean());
  } else {
    pruner.observe_other(samples, losses.values());
  }
}

void observe_planned(DistributedPruner& pruner, std::size_t begin, std::size_t count,
                     const py::object& loss) {
  const Losses losses(loss);
  if (losses.is_mean()) {
    pruner.observe(begin, clip(pruner, begin, count), losses.mean());
  } else {
    pruner.observe(begin, losses.values());
  }
}

double step(DistributedPruner& pruner, std::size_t begin, std::size_t count, double mean_loss) {
  const std::size_t length = clip(pruner, begin, count);
  pruner.observe(begin, length, mean_loss);
  pruner.set_position(begin + length);
  return running_plan(pruner).mean_weight(begin, length);
}

py::list planned_indices(const DistributedPruner& pruner, std::size_t begin, std::size_t count) {
  const RankPlan& plan = running_plan(pruner);
  const std::size_t length = clip(pruner, begin, count);
  py::list out(length);
  for (std::size_t k = 0; k < length; ++k) out[k] = py::int_(plan.sample(begin + k));
  return out;
}

py::array_t<float> weights_planned(const DistributedPruner& pruner, std::size_t begin,
                                   std::size_t count) {
  const RankPlan& plan = running_plan(pruner);
  std::vector<float> weights(clip(pruner, begin, count));
  for (std::size_t k = 0; k < weights.size(); ++k) weights[k] = plan.weight(begin + k);
  return to_numpy(std::move(weights));
}

py::array_t<float> weights_of(const DistributedPruner& pruner, const py::object& indices) {
  const EpochPlan& plan = running_plan(pruner).plan();
  std::vector<SampleIndex> samples = to_samples(indices);
  for (SampleIndex& sample : samples) sample -= static_cast<SampleIndex>(pruner.first_sample());
  plan.mean_weight(samples);  // checks the range
  std::vector<float> weights;
  for (const SampleIndex sample : samples) {
    weights.push_back(plan.weight(static_cast<std::size_t>(sample)));
  }
  return to_numpy(std::move(weights));
}

py::bytes serialize(DistributedPruner& pruner) {
  std::vector<std::byte> bytes;
  {
    const py::gil_scoped_release release;
    bytes = pruner.serialize();
  }
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void deserialize(DistributedPruner& pruner, const py::buffer& buffer) {
  const py::buffer_info info = buffer.request();
  const std::span bytes(static_cast<const std::byte*>(info.ptr),
                        static_cast<std::size_t>(info.size * info.itemsize));
  const py::gil_scoped_release release;
  pruner.deserialize(bytes);
}

void bind_run(py::class_<DistributedPruner>& pruner) {
  pruner
      .def(
          "start_epoch",
          [](DistributedPruner& self, std::uint64_t epoch) { self.start_epoch(epoch); },
          py::arg("epoch"), ReleaseGil(), "Collective, unless the epoch is the running one.")
      .def("exchange", &DistributedPruner::exchange, ReleaseGil(),
           "Collective: makes the losses so far part of the scores of all ranks.")
      .def_property_readonly(
          "plan",
          [](const DistributedPruner& self) {
            return self.plan() == nullptr ? nullptr
                                          : std::make_shared<EpochPlan>(self.plan()->plan());
          },
          "A copy of the running epoch's plan: of all ranks, or, sharded, of this one.")
      .def_property_readonly("epoch",
                             [](const DistributedPruner& self) {
                               return self.plan() == nullptr ? std::nullopt
                                                             : std::optional(self.plan()->epoch());
                             })
      .def_property_readonly(
          "plan_size",
          [](const DistributedPruner& self) {
            return self.plan() == nullptr ? 0 : self.plan()->size();
          },
          "Number of samples of this rank in the running epoch.")
      .def("planned_indices", &planned_indices, py::arg("begin"), py::arg("count"))
      .def_property("position", &DistributedPruner::position, &DistributedPruner::set_position)
      .def_property_readonly("progress", &DistributedPruner::progress)
      .def_property_readonly("pruned_share", &DistributedPruner::pruned_share)
      .def("observe", &observe, py::arg("indices"), py::arg("loss"))
      .def("observe_planned", &observe_planned, py::arg("begin"), py::arg("count"), py::arg("loss"))
      .def("step", &step)
      .def("mean_weight_planned",
           [](const DistributedPruner& self, std::size_t begin, std::size_t count) {
             return running_plan(self).mean_weight(begin, clip(self, begin, count));
           })
      .def("weights_planned", &weights_planned)
      .def("weights_of", &weights_of)
      .def("serialize", &serialize, "Collective: the state of the whole run, on every rank.")
      .def("deserialize", &deserialize, py::arg("state"),
           "Collective: takes over a state; all ranks must give the same.");
}

}  // namespace

void bind_distributed(py::module_& module) {
  py::class_<DistributedPruner> pruner(module, "DistributedPruner",
                                       "One run on several processes.");
  pruner
      .def(py::init(&make), py::arg("settings"), py::kw_only(), py::arg("rank"), py::arg("size"),
           py::arg("reduce"), py::arg("gather"), py::arg("time_limit") = 30.0,
           py::arg("layout") = "automatic", py::arg("drop_remainder") = false)
      .def_property_readonly(
          "options", [](const DistributedPruner& self) { return options_as_dict(self.options()); })
      .def_property_readonly(
          "num_samples", [](const DistributedPruner& self) { return self.options().num_samples; })
      .def_property_readonly(
          "homogeneous_batch_size",
          [](const DistributedPruner& self) { return self.options().homogeneous_batch_size; })
      .def_property_readonly(
          "target_prune", [](const DistributedPruner& self) { return self.options().target_prune; })
      .def_property_readonly(
          "num_epochs", [](const DistributedPruner& self) { return self.schedule().num_epochs; })
      .def_property_readonly(
          "num_pruned_epochs",
          [](const DistributedPruner& self) { return self.schedule().num_pruned_epochs(); })
      .def_property_readonly("layout",
                             [](const DistributedPruner& self) {
                               return std::string(to_text(self.distribution().layout));
                             })
      .def_property_readonly("first_sample", &DistributedPruner::first_sample)
      .def_property_readonly(
          "scores", [](const DistributedPruner& self) { return to_numpy(self.scores()); },
          "Of the samples that this rank keeps, as of the last exchange.")
      .def_property_readonly("num_observations", &DistributedPruner::num_observations)
      .def_property_readonly("num_skipped_observations",
                             &DistributedPruner::num_skipped_observations)
      .def_property_readonly("needs_sample_losses",
                             [](const DistributedPruner& self) {
                               return self.scorer().needs() == LossKind::sample_losses;
                             })
      .def_property_readonly("bytes_exchanged", [](const DistributedPruner& self) {
        return self.communicator().bytes_sent() + self.communicator().bytes_received();
      });
  bind_run(pruner);
}

}  // namespace tamis::python
