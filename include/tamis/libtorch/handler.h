// Handler: dynamic data pruning for a LibTorch training loop. Start here.
#pragma once

#include <torch/data/dataloader_options.h>
#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "tamis/libtorch/dataset.h"
#include "tamis/libtorch/indexed.h"
#include "tamis/libtorch/sampler.h"
#include "tamis/pruner.h"

namespace tamis::libtorch {

// Three lines in a training loop:
//
//   tamis::libtorch::Handler handler({.num_samples = n, .num_epochs = 30});
//   auto loader = torch::data::make_data_loader(handler.wrap(dataset), handler.sampler(options),
//                                               options);
//   ...
//   loss = handler.update(loss);   // or handler.update(loss, batch)
//   loss.backward();
//
// Everything is called from the thread that runs the training loop.
class Handler {
 public:
  // Throws std::invalid_argument if an option is out of range.
  explicit Handler(const PrunerOptions& options);
  explicit Handler(Pruner pruner);

  // The data set with batches that know their samples; wrap last, after all maps. Throws
  // std::invalid_argument if it does not have num_samples samples.
  template <typename Dataset>
  IndexedDataset<Dataset> wrap(Dataset dataset) const {
    if (const auto size = dataset.size()) check_dataset_size(*size);
    return {std::move(dataset), tracker()};
  }

  // The sampler for make_data_loader. `options` must be those that the loader gets; with them,
  // update(loss) knows its batch.
  Sampler sampler(const torch::data::DataLoaderOptions& options) const;
  // For loops that do not use LibTorch's loader; update then needs the indices.
  Sampler sampler() const;

  // Books a loss on its batch and returns the loss to call backward on. `loss` is the mean loss of
  // the batch (a scalar), or one loss per sample (1-D, in the order of the batch). Returns the loss
  // times the mean weight of the batch, or the mean of the losses times their weights; a scalar
  // whose weight is 1 is returned as it is. Never changes `loss`. Reads the value of the loss, so
  // it waits for a GPU.
  //
  // Without a batch: the loss belongs to the batch that the loader handed out last, or, if the loop
  // fetches ahead, to the oldest one that it still holds; how far it fetches ahead is found out at
  // the first update of a pass and must stay the same within it. The batch object must live until
  // its update. Batches without an update are left out and counted (missed_updates). Throws
  // std::invalid_argument if the batch cannot be told: the loader is unordered with several
  // workers, the batch is gone, or it had its update already.
  torch::Tensor update(const torch::Tensor& loss);

  // With a batch: right for every loader and every loop. May be called several times for one batch.
  // Throws std::invalid_argument if the batch belongs to a pass that has ended.
  template <typename Batch>
  torch::Tensor update(const torch::Tensor& loss, const Indexed<Batch>& batch) {
    return update_origin(loss, batch);
  }
  // With indices of samples, for example of a part of a batch; a tensor must be int64 and 1-D.
  torch::Tensor update(const torch::Tensor& loss, const torch::Tensor& indices);
  torch::Tensor update(const torch::Tensor& loss, std::span<const SampleIndex> indices);

  // Batches that were handed out, in all passes so far, and never got an update.
  std::size_t missed_updates() const;
  // Called when such batches are found: how many, and in which epoch. The default does nothing.
  void on_missed_updates(std::function<void(std::size_t count, std::uint64_t epoch)> callback);

  // Epoch of the running plan; 0 before the first pass.
  std::uint64_t epoch() const;
  // Makes `epoch` the running one; it ends the pass. The next pass goes on in it where it stopped,
  // or at its beginning if it is another epoch than before or complete. Not needed for plain loops.
  void set_epoch(std::uint64_t epoch);

  // How many batches are still to come in the running epoch or, if that one is complete, in the
  // next one (0 after the last).
  std::size_t num_batches(std::size_t batch_size, bool drop_last = false) const;

  // Share of the run that is done, in [0, 1]; for learning-rate schedules.
  double progress() const { return pruner().progress(); }
  const Pruner& pruner() const;

  // Records every update from now on, for `tamis analyze` and `tamis replay`; see Pruner::record.
  // A resumed run calls load() first. Own losses are recorded where update() gets one per sample.
  void record(const std::filesystem::path& folder, const RecorderOptions& options = {});
  // Null unless record() was called. Its record_true_losses() keeps what an evaluation has found.
  Recorder* recorder() const;

  // State of the run; in the middle of an epoch too: the next pass then goes on at the first batch
  // that had no update. Saving is exact with ordered loaders; with unordered ones the few batches
  // that were overtaken may be repeated. load ends the pass; see Pruner::save and Pruner::load.
  void save(const std::filesystem::path& path) const;
  void load(const std::filesystem::path& path);

 private:
  void check_dataset_size(std::size_t size) const;
  std::shared_ptr<detail::BatchTracker> tracker() const;
  torch::Tensor update_origin(const torch::Tensor& loss, const BatchOrigin& origin);

  std::shared_ptr<detail::TrainingState> state_;
};

}  // namespace tamis::libtorch
