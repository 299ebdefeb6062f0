// LossBook for Python: an update gives the weights of its batch.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include "arrays.h"
#include "module.h"
#include "plan_weights.h"
#include "tamis/loss_book.h"

namespace tamis::python {

namespace {

class Book : public LossBook {
 public:
  explicit Book(Pruner& pruner) : LossBook(pruner), pruner_(pruner) {}
  const EpochPlan& plan() const { return *pruner_.plan(); }

 private:
  Pruner& pruner_;
};

nb::object update(Book& book, nb::handle loss) {
  const Losses losses(loss);
  if (losses.is_mean()) {
    const PlannedBatch batch = book.update(losses.mean());
    return nb::float_(book.plan().mean_weight(batch.begin, batch.count));
  }
  const PlannedBatch batch = book.update(losses.values());
  return weights_at(book.plan(), batch.begin, batch.count);
}

nb::object update_samples(Book& book, nb::handle samples, nb::handle loss) {
  const Losses losses(loss);
  const Indices indices(samples);
  if (losses.is_mean()) {
    book.LossBook::update(indices.span(), losses.mean());
    return nb::float_(book.plan().mean_weight_of(indices.span()));
  }
  book.LossBook::update(indices.span(), losses.values());
  return weights_of(book.plan(), indices.span());
}

nb::dict end_pass(Book& book) {
  const PassSummary summary = book.end_pass();
  nb::dict out;
  out["epoch"] = summary.epoch;
  out["num_batches"] = summary.num_batches;
  out["num_updates"] = summary.num_updates;
  out["num_missed"] = summary.num_missed;
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
      .def("update_samples", &update_samples, nb::arg("samples"), nb::arg("loss"),
           "The same for samples by their index in the data set.")
      .def("end_pass", &end_pass, "Ends the pass and says how it went.")
      .def("before_save", &Book::before_save)
      .def("after_load", &Book::after_load);
}

}  // namespace tamis::python
