// WatchedRows for Python: what a step with one watched output does, with as little Python as
// possible.
#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "arrays.h"
#include "base/gradient_rows.h"
#include "book.h"
#include "module.h"

namespace tamis::python {

namespace {

// Looked up once: this module does not link torch.
struct Torch {
  nb::object tensor, float32, float64, empty_like;
};

const Torch& torch() {
  static const Torch* const found = [] {
    const nb::module_ module = nb::module_::import_("torch");
    return new Torch{.tensor = module.attr("Tensor"),
                     .float32 = module.attr("float32"),
                     .float64 = module.attr("float64"),
                     .empty_like = module.attr("empty_like")};
  }();
  return *found;
}

std::uintptr_t address_of(nb::handle tensor) {
  return nb::cast<std::uintptr_t>(tensor.attr("data_ptr")());
}

// The hook on the node that made the only watched output of a step, a tensor with a row per sample.
// Anything out of the ordinary it leaves to the step: the first backward pass of a run, a second
// one over the same graph, gradients that are not plain memory.
class WatchedRows {
 public:
  WatchedRows(nb::object step, nb::object receive, std::size_t place, std::size_t num_rows,
              int norm_order)
      : step_(std::move(step)),
        receive_(std::move(receive)),
        place_(place),
        num_rows_(num_rows),
        norm_order_(norm_order) {}

  // The update of the batch: its mean weight, or None, and no claim, if it has other than num_rows
  // samples.
  nb::object claim(nb::object book, double mean_loss, bool exact_weights) {
    auto& found = nb::cast<Book&>(book);
    if (found.next_batch().count != num_rows_) return nb::none();
    const Claim claim = found.LossBook::claim();
    claim_ = claim.number;
    mean_loss_ = mean_loss;
    const EpochPlan& plan = found.plan();
    const double mean_weight = plan.mean_weight(claim.batch.begin, num_rows_);
    if (exact_weights) {
      factors_ = factors_of(num_rows_, mean_weight,
                            [&](std::size_t k) { return plan.weight(claim.batch.begin + k); });
    }
    book_ = std::move(book);
    return nb::float_(mean_weight);
  }

  nb::object receive(nb::tuple gradients) {
    if (!book_.is_valid()) return receive_(gradients);
    const nb::object gradient = gradients[place_];
    const nb::object type = gradient.is_none() ? nb::none() : gradient.attr("dtype");
    const bool is_double = type.is(torch().float64);
    if ((!is_double && !type.is(torch().float32)) || !is_plain_memory(gradient)) {
      hand_over();
      return receive_(gradients);
    }
    const nb::object weighted = factors_.empty() ? nb::none() : torch().empty_like(gradient);
    const std::vector<float> norms =
        is_double ? read<double>(gradient, weighted) : read<float>(gradient, weighted);
    nb::cast<Book&>(book_).settle(claim_, mean_loss_, norms);
    hand_over();
    step_.attr("is_settled") = true;
    if (weighted.is_none()) return weighted;
    nb::list going_on(gradients);
    going_on[place_] = weighted;
    return nb::tuple(going_on);
  }

 private:
  // Not one of which a second derivative is wanted.
  bool is_plain_memory(nb::handle gradient) const {
    return gradient.type().is(torch().tensor) && nb::cast<bool>(gradient.attr("is_cpu")) &&
           !nb::cast<bool>(gradient.attr("requires_grad")) &&
           nb::cast<bool>(gradient.attr("is_contiguous")()) &&
           nb::cast<std::size_t>(gradient.attr("shape")[0]) == num_rows_;
  }

  template <typename T>
  std::vector<float> read(nb::handle gradient, nb::handle weighted) const {
    const auto* const rows = reinterpret_cast<const T*>(address_of(gradient));
    const std::size_t num_columns = nb::cast<std::size_t>(gradient.attr("numel")()) / num_rows_;
    std::vector<float> norms(num_rows_);
    if (weighted.is_none()) {
      detail::norms_of_rows(rows, num_columns, norm_order_, norms);
    } else {
      detail::weigh_rows(rows, num_columns, norm_order_, factors_,
                         reinterpret_cast<T*>(address_of(weighted)), norms);
    }
    return norms;
  }

  // From now on the step goes on with the claim.
  void hand_over() {
    step_.attr("book") = std::exchange(book_, nb::object());
    step_.attr("claim") = claim_;
    step_.attr("count") = num_rows_;
    step_.attr("loss") = mean_loss_;
    if (!factors_.empty()) step_.attr("factors") = to_numpy(std::move(factors_));
  }

  nb::object step_;
  nb::object receive_;
  std::size_t place_;
  std::size_t num_rows_;
  int norm_order_;
  nb::object book_ = {};  // there is a claim that the step does not know of
  std::uint64_t claim_ = 0;
  double mean_loss_ = 0.0;
  std::vector<double> factors_ = {};  // empty: all weights are equal
};

}  // namespace

void bind_watched_rows(nb::module_& module) {
  nb::class_<WatchedRows>(module, "WatchedRows", nb::is_weak_referenceable(),
                          "The hook of a step with one watched output.")
      .def(nb::init<nb::object, nb::object, std::size_t, std::size_t, int>(), nb::arg("step"),
           nb::arg("receive"), nb::arg("place"), nb::arg("num_rows"), nb::arg("norm_order"))
      .def("claim", &WatchedRows::claim, nb::arg("book"), nb::arg("mean_loss"),
           nb::arg("exact_weights"),
           "The update of the batch. Returns its mean weight, or None, and does nothing, if its "
           "samples are not as many as the rows.")
      .def("__call__", &WatchedRows::receive, nb::arg("gradients"),
           "The gradients of the node's outputs; returns those to go on with, or None.");
}

}  // namespace tamis::python
