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
#include <string>
#include <utility>
#include <vector>

#include "tamis/libtorch/dataset.h"
#include "tamis/libtorch/indexed.h"
#include "tamis/libtorch/loader.h"
#include "tamis/libtorch/sampler.h"
#include "tamis/loss_book.h"
#include "tamis/pruner.h"

namespace tamis::libtorch {

// Three lines in a training loop:
//
//   tamis::libtorch::Handler handler({.num_samples = n, .num_epochs = 30});
//   auto loader = handler.loader(dataset, options);
//   for (auto& batch : loader) {
//     ...
//     loss = handler.update(loss);
//     loss.backward();
//
// Which batch a loss belongs to is known in one of three ways:
//   by delivery  the loader is handler.loader(dataset, options): the batch that it handed out last.
//   by ids       update(loss, batch) with a batch of handler.wrap(dataset), or with indices. Right
//                in every loop and with every loader: one that fetches ahead, skips, or splits.
//   in order     the loader is torch's, with handler.sampler(options): the k-th update(loss) of a
//                pass belongs to its k-th batch. Losses are kept back until the pass ends, and
//                dropped with a warning if updates and batches did not alternate.
//
// With output = handler.watch(output) before the loss, the score output-gradient has per-sample
// quality from a scalar loss, and weights are exact. See docs/watching_outputs.md.
//
// With several ranks, each has a handler with the same options and a communicator, walks over the
// same number of batches, and makes the calls marked "collective". Everything is called from the
// thread that runs the training loop.
class Handler {
 public:
  // Collective. Throws as Pruner's constructor does.
  explicit Handler(const PrunerOptions& options,
                   std::shared_ptr<Communicator> communicator = nullptr);
  explicit Handler(Pruner pruner);

  // A loader of batches of the data set, whose samples come from the plan. Throws
  // std::invalid_argument if the data set does not have num_samples samples, if several workers do
  // not enforce the order, if max_jobs is set without workers (torch's loader would lose batches),
  // or if batch_size does not divide homogeneous_batch_size.
  template <typename Dataset>
  Loader<Dataset> loader(Dataset dataset, const torch::data::DataLoaderOptions& options) {
    check_size(dataset);
    return {std::move(dataset), state_, shape_of(options, Booking::by_delivery), options};
  }

  // The sampler for torch::data::make_data_loader, which must get the same options. With several
  // workers that do not enforce the order, update needs the batch. Throws std::invalid_argument as
  // loader() does otherwise.
  Sampler sampler(const torch::data::DataLoaderOptions& options) {
    return {state_, shape_of(options, Booking::in_order)};
  }

  // The data set with batches that know their samples; wrap last, after all maps. Throws
  // std::invalid_argument if it does not have num_samples samples.
  template <typename Dataset>
  IndexedDataset<Dataset> wrap(Dataset dataset) const {
    check_size(dataset);
    return IndexedDataset<Dataset>(std::move(dataset));
  }

  // Watches an output of the model, with the batch as its first dimension, and returns the one to
  // go on with; several belong to the same batch. The update that follows is then observed in the
  // backward pass: the loss, and for every sample the norm of its gradient by all watched outputs.
  // Where the weights of the batch differ, the rows of these gradients take them, so that the
  // parameters get the gradient of mean(w_i l_i) from a scalar loss. Without gradients (evaluation)
  // it returns the output as it is. Throws as OutputWatch::watch does. An update whose backward
  // pass reaches no watched output throws std::logic_error at the next update, or warns at the end
  // of the pass.
  torch::Tensor watch(const torch::Tensor& output);
  std::vector<torch::Tensor> watch(const std::vector<torch::Tensor>& outputs);
  // False: watched rows do not take the weights of their samples, and the loss has the mean weight
  // of its batch, as without watching.
  void set_exact_weights(bool exact);

  // Gives the loss of a batch to the pruner and returns the loss to call backward on. `loss` is the
  // mean loss of the batch (a scalar), or one loss per sample (1-D, in the order of the batch).
  // Returns the loss times the mean weight of the batch, or the mean of the losses times their
  // weights; a scalar whose weight is 1 is returned as it is. Never changes `loss`. Reads the value
  // of the loss, so it waits for a GPU. Throws std::logic_error, with the cure, if it cannot be
  // known which batch is meant, and std::invalid_argument for a loss of another shape or type.
  torch::Tensor update(const torch::Tensor& loss);
  // The same for these samples of the data set; may be called several times for one batch, also for
  // parts of it. A tensor must be int64 and 1-D.
  torch::Tensor update(const torch::Tensor& loss, std::span<const SampleIndex> indices);
  torch::Tensor update(const torch::Tensor& loss, const torch::Tensor& indices);
  template <typename Batch>
  torch::Tensor update(const torch::Tensor& loss, const Indexed<Batch>& batch) {
    return update(loss, std::span<const SampleIndex>(batch.sample_indices));
  }

  // Ends the running pass, if there is one. The next pass and set_epoch do it by themselves; call
  // it after the last epoch if losses are kept back (in order): only then are they in the scores
  // and in the recording.
  void end_pass();
  // How the last pass that has ended went.
  const PassSummary& last_pass() const;
  // Gets the text about a pass in which losses were dropped or batches had no update. The default
  // is torch's warning; an empty function is silence.
  void on_warning(std::function<void(const std::string& text)> callback);

  // Epoch of the running plan; 0 before the first pass.
  std::uint64_t epoch() const;
  // Collective. Ends the pass and makes `epoch` the running one; the next pass is over all of it,
  // or, if a loaded state is in this epoch, over the rest. Not needed for plain loops.
  void set_epoch(std::uint64_t epoch);

  // How many batches are still to come in the running pass or, if there is none, in the next one
  // (0 after the last epoch). Collective where Pruner::preview is.
  std::size_t num_batches(std::size_t batch_size, bool drop_last = false) const;

  // Share of the run that is done, in [0, 1]; for learning-rate schedules.
  double progress() const { return pruner().progress(); }
  const Pruner& pruner() const;

  // Collective. Records every update from now on, for `tamis analyze` and `tamis replay`; see
  // Pruner::record. A resumed run calls load() first.
  void record(const std::filesystem::path& folder, const RecorderOptions& options = {});
  // Null unless record() was called. Its record_true_losses() keeps what an evaluation has found.
  Recorder* recorder();

  // Collective. State of the run; in the middle of a pass too: the first pass after load then goes
  // on after the last batch that had its update. load ends the pass; see Pruner::save and
  // Pruner::load.
  void save(const std::filesystem::path& path);
  void load(const std::filesystem::path& path);

 private:
  template <typename Dataset>
  void check_size(const Dataset& dataset) const {
    if (const auto size = dataset.size()) check_size(*size);
  }
  void check_size(std::size_t size) const;
  // Observes the loss in the backward pass. `claim` says which batch it belongs to.
  void observe_later(const torch::Tensor& loss, std::vector<float> weights,
                     const std::function<Claim()>& claim);
  detail::LoaderShape shape_of(const torch::data::DataLoaderOptions& options,
                               Booking booking) const;

  std::shared_ptr<detail::HandlerState> state_;
};

}  // namespace tamis::libtorch
