// IndexedDataset: a data set whose batches say which samples they hold.
#pragma once

#include <torch/data/datasets/base.h>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "tamis/libtorch/indexed.h"
#include "tamis/types.h"

namespace tamis::libtorch {

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

  explicit IndexedDataset(Dataset dataset) : dataset_(std::move(dataset)) {}

  BatchType get_batch(BatchRequestType request) override {
    std::vector<SampleIndex> indices(request.begin(), request.end());
    return {dataset_.get_batch(std::move(request)), std::move(indices)};
  }

  std::optional<std::size_t> size() const override { return dataset_.size(); }

  Dataset& dataset() { return dataset_; }
  const Dataset& dataset() const { return dataset_; }

 private:
  Dataset dataset_;
};

}  // namespace tamis::libtorch
