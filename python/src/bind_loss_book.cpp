// LossBook for Python: an update gives the weights of its batch.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "book.h"
#include "module.h"
#include "plan_weights.h"
#include "sample_ids.h"

namespace tamis::python {

namespace {

nb::object update(Book& book, nb::handle loss) {
  const Losses losses(loss);
  if (losses.is_mean()) {
    const PlannedBatch batch = book.update(losses.mean());
    return nb::float_(book.plan().mean_weight(batch.begin, batch.count));
  }
  const PlannedBatch batch = book.update(losses.values());
  return weights_at(book.plan(), batch.begin, batch.count);
}

// Per-sample losses and their weights over the batch size in the memory of two tensors, so that a
// step makes no arrays.
void update_memory(Book& book, std::uintptr_t losses, std::uintptr_t weights, std::size_t count) {
  const auto* const from = reinterpret_cast<const float*>(losses);
  auto* const to = reinterpret_cast<float*>(weights);
  const PlannedBatch batch = book.update(std::span(from, count));
  const float share = 1.0F / static_cast<float>(count);
  for (std::size_t k = 0; k < count; ++k) to[k] = book.plan().weight(batch.begin + k) * share;
}

nb::object weights_of(const Book& book, const BatchIds& ids) {
  const PastWeights* const past = book.past_weights(ids);
  if (past == nullptr) return python::weights_of(book.plan(), ids.indices());
  std::vector<float> weights;
  for (const SampleIndex index : ids.indices()) weights.push_back(past->weight_of(index));
  return nb::cast(to_numpy(std::move(weights)));
}

double mean_weight_of(const Book& book, const BatchIds& ids) {
  const PastWeights* const past = book.past_weights(ids);
  return past == nullptr ? book.plan().mean_weight_of(ids.indices())
                         : past->mean_weight_of(ids.indices());
}

// A batch of an epoch that is over is scored, but is none of the running pass.
template <typename Loss>
void observe_ids(Book& book, const BatchIds& ids, const Loss& loss) {
  if (book.past_weights(ids) == nullptr) {
    book.LossBook::update(ids.indices(), loss);
  } else {
    book.pruner().observe(ids.indices(), loss);
  }
}

nb::object update_samples(Book& book, nb::handle samples, nb::handle loss) {
  const Losses losses(loss);
  const Indices given(samples);
  const BatchIds ids(given.span());
  if (losses.is_mean()) {
    observe_ids(book, ids, losses.mean());
    return nb::float_(mean_weight_of(book, ids));
  }
  observe_ids(book, ids, losses.values());
  return weights_of(book, ids);
}

nb::object to_object(std::vector<double>&& factors) {
  return factors.empty() ? nb::none() : nb::cast(to_numpy(std::move(factors)));
}

// Number of the claim, mean weight of its batch, and one weight per sample or the rows' factors.
nb::tuple claim(Book& book, nb::handle samples, bool per_sample) {
  if (samples.is_none()) {
    const Claim claim = book.claim();
    const auto [begin, count] = claim.batch;
    const EpochPlan& plan = book.plan();
    const double mean_weight = plan.mean_weight(begin, count);
    const auto weight_at = [&](std::size_t k) { return plan.weight(begin + k); };
    return nb::make_tuple(claim.number, mean_weight,
                          per_sample ? weights_at(plan, begin, count)
                                     : to_object(factors_of(count, mean_weight, weight_at)));
  }
  const Indices given(samples);
  const BatchIds ids(given.span());
  if (book.past_weights(ids) != nullptr) {
    throw std::invalid_argument(
        "update: with watched outputs a batch must be updated in its epoch, and this one is of "
        "epoch " +
        std::to_string(*ids.epoch()) + ", which is over");
  }
  const nb::object weights = weights_of(book, ids);  // refuses wrong ids
  const Claim claim = book.claim(ids.indices());
  const double mean_weight = mean_weight_of(book, ids);
  if (per_sample) return nb::make_tuple(claim.number, mean_weight, weights);
  const Buffer buffer(weights);
  const auto weight_at = [&](std::size_t k) { return buffer.as<float>()[k]; };
  return nb::make_tuple(claim.number, mean_weight,
                        to_object(factors_of(ids.indices().size(), mean_weight, weight_at)));
}

bool settle(Book& book, std::uint64_t number, double mean_loss, nb::handle norms) {
  return book.settle(number, mean_loss, Norms(norms).values().value());
}

nb::dict end_pass(Book& book) {
  const PassSummary summary = book.end_pass();
  nb::dict out;
  out["epoch"] = summary.epoch;
  out["num_batches"] = summary.num_batches;
  out["num_updates"] = summary.num_updates;
  out["num_missed"] = summary.num_missed;
  out["num_unsettled"] = summary.num_unsettled;
  out["dropped"] = summary.dropped;
  out["out_of_order"] = summary.out_of_order;
  out["warning"] = to_warning(summary);
  return out;
}

}  // namespace

void bind_loss_book(nb::module_& module) {
  nb::class_<Book>(module, "LossBook", "Which samples a loss belongs to. It never infers.")
      .def(nb::init<Pruner&>(), nb::arg("pruner"), nb::keep_alive<1, 2>())
      .def(
          "begin_pass",
          [](Book& self, bool in_order) {
            self.begin_pass(in_order ? Booking::in_order : Booking::by_delivery);
          },
          nb::kw_only(), nb::arg("in_order"), "Starts a pass over the rest of the running plan.")
      .def_prop_ro("in_pass", &Book::in_pass)
      .def_prop_ro("has_refused", &Book::has_refused,
                   "True if an update was refused because something fetches ahead.")
      .def("deliver", &Book::deliver, nb::arg("count"),
           "The next `count` samples of the plan have been handed out.")
      .def("finish_delivery", &Book::finish_delivery,
           "The loader has handed out all it will; what is left of the plan was dropped.")
      .def(
          "next_batch",
          [](Book& self) {
            const PlannedBatch batch = self.next_batch();
            return std::pair(batch.begin, batch.count);
          },
          "First sample in the plan and size of the batch that an update without ids belongs to.")
      .def("update", &update, nb::arg("loss"),
           "The loss of the batch that the pass says: its mean, or one per sample. Returns the "
           "batch's mean weight, or one weight per sample.")
      .def("update_memory", &update_memory, nb::arg("losses"), nb::arg("weights"), nb::arg("count"),
           "update() with `count` losses at an address, all of them contiguous float32; puts their "
           "weights, divided by `count`, at another.")
      .def("update_samples", &update_samples, nb::arg("samples"), nb::arg("loss"),
           "The same for samples by their ids, or by their index in the data set.")
      .def(
          "weights_of",
          [](const Book& self, nb::handle samples) {
            const Indices given(samples);
            return weights_of(self, BatchIds(given.span()));
          },
          nb::arg("samples"), "One weight per sample, of the epoch that the ids are of.")
      .def("keep_weights", &Book::keep_weights,
           "Before the next epoch starts: batches of the running one may still be under way.")
      .def(
          "claim", &claim, nb::arg("samples").none(), nb::arg("per_sample"),
          "An update whose observation comes later, with settle(). Returns its number, the mean "
          "weight of the batch, and one weight per sample; or, unless per_sample, the weights over "
          "their mean, None if all are equal.")
      .def("settle", &settle, nb::arg("claim"), nb::arg("mean_loss"), nb::arg("norms"),
           "The mean loss of a claim, and the norms of the gradients of its outputs. Returns False "
           "if the claim is not open any more.")
      .def("give_up", &Book::give_up, "Observes nothing more, whatever is still to come.")
      .def_prop_ro("num_open_claims", &Book::num_open_claims)
      .def("end_pass", &end_pass, "Ends the pass and says how it went.")
      .def("before_save", &Book::before_save)
      .def("after_load", &Book::after_load);
}

}  // namespace tamis::python
