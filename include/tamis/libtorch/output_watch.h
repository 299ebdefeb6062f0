// OutputWatch: what the backward pass of a loss says about each sample of its batch.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace tamis::libtorch {

// The outputs of one batch, handed on through identity nodes. backward() gives each node a gradient
// with one row per sample: its norm is the sample's share of the loss, and a weight put on the row
// is the weight of the sample in the gradient of every parameter.
//
//   tamis::libtorch::OutputWatch watch;
//   const torch::Tensor logits = watch.watch(model->forward(images));
//   watch.bind(batch_size);
//   cross_entropy(logits, labels).backward();
//   pruner.observe(begin, mean_loss, watch.norms());
//
// Handler::watch does all of it. Used by the thread of the training loop; may be dropped before the
// backward pass.
class OutputWatch {
 public:
  // What a backward pass has brought, when it is over.
  struct Backward {
    std::span<const float> norms;  // one per sample; empty if no watched output had a gradient
    bool is_final = true;          // false: the graph is kept, so another pass may come
  };

  // `norm_order`: see Scorer::norm_order.
  explicit OutputWatch(int norm_order = 2);

  // Returns the output to go on with; without gradients (torch::NoGradGuard) the output itself.
  // Several tensors, at once or one by one, belong to one batch: the squares of their norms are
  // added up, or the norms themselves if they are of order 1. Throws std::invalid_argument unless
  // the output is a floating-point tensor with a gradient and at least one dimension; for norms of
  // order 1 it has two, for these are of logits, one row per sample.
  torch::Tensor watch(const torch::Tensor& output);
  std::vector<torch::Tensor> watch(const std::vector<torch::Tensor>& outputs);
  // True if there is nothing to wait for.
  bool empty() const;
  // True if a backward pass went through before bind(), and gave up the graph.
  bool is_spent() const;

  // The outputs have one row for each of `count` samples; throws std::invalid_argument, with both
  // sizes, if none has. One that has another number must not get a gradient, or backward() throws.
  // `weights` has one entry per sample, or is empty: row i of the gradients is multiplied by
  // weights[i] / mean(weights), after its norm was taken. Norms come from the first backward pass
  // after this, weights are put on the gradients of all.
  void check_rows(std::size_t count) const;
  void bind(std::size_t count, std::span<const float> weights = {});
  // Called once, when the first backward pass in which an output has a gradient is over; and before
  // that after every pass through `loss`, the tensor that backward() runs through, in which none
  // has.
  void on_finish(const torch::Tensor& loss, std::function<void(const Backward&)> callback);

  // Of every sample, over all watched outputs, in float; empty before the backward pass.
  std::vector<float> norms() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tamis::libtorch
