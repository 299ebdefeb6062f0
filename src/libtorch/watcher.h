// Watcher: ties watched outputs to the update that follows them.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <string>

#include "tamis/libtorch/output_watch.h"
#include "tamis/scorer.h"

namespace tamis::libtorch::detail {

class Watcher {
 public:
  explicit Watcher(int norm_order) : norm_order_(norm_order), pending_(norm_order) {}

  // The outputs watched since the last update.
  OutputWatch& pending() {
    is_active_ = true;
    return pending_;
  }
  // From the first watch on.
  bool is_active() const { return is_active_; }
  void drop_pending() {
    if (!pending_.empty()) pending_ = OutputWatch(norm_order_);
  }

  bool exact_weights() const { return exact_weights_; }
  void set_exact_weights(bool exact) { exact_weights_ = exact; }

  // What the update of a batch of `count` samples is about. Throws std::invalid_argument for a loss
  // without a gradient or outputs of another batch size, and std::logic_error if no output was
  // watched, if backward() came before the update, or if that of the update before reached none of
  // its outputs.
  OutputWatch take(const torch::Tensor& loss, std::size_t count);

  // A backward pass is over that did not reach the watched outputs of its batch.
  void note_unreached() { is_unreached_ = true; }
  // What to say about it, once; empty if all went well.
  std::string take_complaint();

 private:
  int norm_order_;
  OutputWatch pending_;
  bool is_active_ = false;
  bool exact_weights_ = true;
  bool is_unreached_ = false;
};

}  // namespace tamis::libtorch::detail
