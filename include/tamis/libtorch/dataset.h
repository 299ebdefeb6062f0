// IndexedDataset: a data set whose batches say which samples they hold.
#pragma once

#include <torch/data/datasets/base.h>

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tamis/libtorch/indexed.h"
#include "tamis/types.h"

namespace tamis::libtorch {

namespace detail {

class BatchTracker;

// One batch while a data set makes it. Any thread. If it goes without finish(), because the data
// set threw, the batch counts as never handed out.
class BatchInProgress {
 public:
  BatchInProgress(std::shared_ptr<BatchTracker> tracker, std::vector<SampleIndex> indices);
  BatchInProgress(const BatchInProgress&) = delete;
  BatchInProgress& operator=(const BatchInProgress&) = delete;
  ~BatchInProgress();

  BatchOrigin finish();

 private:
  std::shared_ptr<BatchTracker> tracker_;
  std::vector<SampleIndex> indices_;
  std::shared_ptr<const BatchTicket> ticket_;
};

}  // namespace detail

// Any stateless data set of LibTorch, with Indexed batches. Made by Handler::wrap; wrap last, after
// all maps. Copying copies the wrapped data set, which is what the loader does for each worker.
template <typename Dataset>
class IndexedDataset final
    : public torch::data::datasets::BatchDataset<IndexedDataset<Dataset>,
                                                 Indexed<typename Dataset::BatchType>,
                                                 typename Dataset::BatchRequestType> {
  static_assert(!Dataset::is_stateful,
                "a stateful data set chooses its samples itself, so it cannot be pruned");

 public:
  using BatchType = Indexed<typename Dataset::BatchType>;
  using BatchRequestType = typename Dataset::BatchRequestType;

  IndexedDataset(Dataset dataset, std::shared_ptr<detail::BatchTracker> tracker)
      : dataset_(std::move(dataset)), tracker_(std::move(tracker)) {}

  BatchType get_batch(BatchRequestType request) override {
    std::vector<SampleIndex> indices;
    indices.reserve(request.size());
    for (const auto index : request) indices.push_back(static_cast<SampleIndex>(index));
    detail::BatchInProgress progress(tracker_, std::move(indices));
    auto batch = dataset_.get_batch(std::move(request));
    return {std::move(batch), progress.finish()};
  }

  std::optional<std::size_t> size() const override { return dataset_.size(); }

  Dataset& dataset() { return dataset_; }
  const Dataset& dataset() const { return dataset_; }

 private:
  Dataset dataset_;
  std::shared_ptr<detail::BatchTracker> tracker_;
};

}  // namespace tamis::libtorch
