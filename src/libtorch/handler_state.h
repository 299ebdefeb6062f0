// HandlerState: what a handler, its samplers and its loaders share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libtorch/watcher.h"
#include "tamis/libtorch/sampler.h"
#include "tamis/loss_book.h"
#include "tamis/pruner.h"

namespace tamis::libtorch::detail {

// Not thread-safe. The loss book points into it, so it stays where it is.
class HandlerState {
 public:
  explicit HandlerState(Pruner pruner);
  HandlerState(const HandlerState&) = delete;
  HandlerState& operator=(const HandlerState&) = delete;

  Pruner& pruner() { return pruner_; }
  LossBook& book() { return book_; }
  Watcher& watcher() { return watcher_; }
  // True if an update with this loss is observed in the backward pass: not if the score is made of
  // the losses of samples, which are here and have exact weights anyway.
  bool is_watched(const torch::Tensor& loss) const;
  const LoaderShape& shape() const { return shape_; }

  // Number of the running pass; another one after end_pass.
  std::uint64_t pass() const { return pass_; }
  void start_pass(const LoaderShape& shape);
  void end_pass();
  const PassSummary& last_pass() const { return last_pass_; }
  void on_warning(std::function<void(const std::string&)> callback) { warn_ = std::move(callback); }

  // The next batch of the sampler; nothing at the end of the pass.
  std::optional<std::vector<std::size_t>> take_batch();
  // By delivery: the loader has handed one out, or has no more.
  void deliver();
  void finish_delivery();
  // After every update.
  void note_update();

  // The running epoch has no more batches: the next pass is one over the next epoch.
  bool is_over() const;
  void set_epoch(std::uint64_t epoch);
  void save(const std::function<void(Pruner&)>& save_pruner);
  void load(const std::function<void(Pruner&)>& load_pruner);

 private:
  void close_pass();
  // Samples of the batch that begins at `position`; 0 if there is none.
  std::size_t batch_length(std::size_t position) const;
  bool has_handed_out_all() const;

  Pruner pruner_;
  LossBook book_;
  Watcher watcher_;
  std::uint64_t pass_ = 0;
  LoaderShape shape_;              // of the loader of the pass
  std::size_t next_ = 0;           // position of the sampler in the plan
  std::size_t num_delivered_ = 0;  // position of the loader in the plan
  std::size_t start_ = 0;          // of the pass in the plan
  std::size_t num_asked_ = 0;      // times that the sampler was asked for a batch
  bool has_update_ = false;        // the pass has had one
  bool is_exhausted_ = false;      // its loader has no more batches
  bool is_loaded_ = false;         // a state has been loaded and not been continued yet
  bool is_chosen_ = false;         // set_epoch says which epoch the next pass is over
  PassSummary last_pass_;
  std::function<void(const std::string&)> warn_;
};

}  // namespace tamis::libtorch::detail
