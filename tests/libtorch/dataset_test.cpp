// Wrapped data sets: any kind, and code for the original batches works with the wrapped ones.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <optional>
#include <type_traits>
#include <vector>

#include "tamis/libtorch/handler.h"

namespace tamis::libtorch::dataset_test {

using torch::data::Example;
using torch::data::TensorExample;

// Gives one example at a time.
struct Singles : torch::data::datasets::Dataset<Singles> {
  Example<> get(std::size_t index) override {
    return {torch::tensor(static_cast<double>(index)), torch::tensor(2.0)};
  }
  std::optional<std::size_t> size() const override { return 12; }
};

// Takes its indices as a vector, and cannot be copied cheaply.
struct VectorRequests
    : torch::data::datasets::BatchDataset<VectorRequests, torch::Tensor, std::vector<std::size_t>> {
  torch::Tensor get_batch(std::vector<std::size_t> request) override {
    return torch::tensor(std::vector<double>(request.begin(), request.end()));
  }
  std::optional<std::size_t> size() const override { return 12; }
};

double sum_of_data(const Example<>& batch) { return batch.data.sum().item<double>(); }

class Wrap : public ::testing::Test {
 protected:
  Handler handler_{PrunerOptions{.num_samples = 12, .num_epochs = 3, .policy = {"none"}}};

  template <typename Dataset, typename Check>
  void check(Dataset dataset, Check check_batch) {
    for (const std::size_t workers : {0, 2}) {
      const auto options = torch::data::DataLoaderOptions(5).workers(workers);
      auto loader =
          torch::data::make_data_loader(handler_.wrap(dataset), handler_.sampler(options), options);
      std::vector<double> seen(12);
      for (auto& batch : *loader) {
        EXPECT_TRUE(batch.sample_indices.size() == 5 || batch.sample_indices.size() == 2);
        for (const SampleIndex index : batch.sample_indices)
          ++seen[static_cast<std::size_t>(index)];
        check_batch(batch);
        handler_.update(torch::ones({}), batch);
      }
      EXPECT_EQ(seen, std::vector<double>(12, 1.0));
    }
  }
};

double sum(const std::vector<SampleIndex>& indices) {
  double total = 0.0;
  for (const SampleIndex index : indices) total += static_cast<double>(index);
  return total;
}

TEST_F(Wrap, StackedExamplesWorkAsBefore) {
  check(Singles().map(torch::data::transforms::Stack<>()), [](auto& batch) {
    EXPECT_DOUBLE_EQ(sum_of_data(batch), sum(batch.sample_indices));
    auto& [data, target] = batch;
    EXPECT_TRUE(data.is_same(batch.data));
    EXPECT_TRUE(target.is_same(batch.target));
    const auto copy = batch;
    const auto& [data2, target2] = copy;
    EXPECT_TRUE(data2.is_same(batch.data));
    EXPECT_TRUE(target2.is_same(batch.target));
    Example<> plain = batch;  // also for code that stores them
    EXPECT_TRUE(plain.data.is_same(batch.data));
  });
}

TEST_F(Wrap, ListsOfExamplesWorkAsBefore) {
  check(Singles(), [](std::vector<Example<>>& batch) {
    EXPECT_TRUE(batch.size() == 5 || batch.size() == 2);
    EXPECT_DOUBLE_EQ(batch[0].target.item<double>(), 2.0);
  });
}

TEST_F(Wrap, TensorDataSetsWorkAsBefore) {
  const auto dataset = torch::data::datasets::TensorDataset(torch::arange(12.0));
  check(dataset, [](std::vector<TensorExample>& batch) { EXPECT_EQ(batch[0].data.dim(), 0); });
}

TEST_F(Wrap, DataSetsWithTheirOwnRequestsAndTensorBatchesWorkAsBefore) {
  check(VectorRequests(), [](auto& batch) {
    const torch::Tensor& tensor = batch;
    EXPECT_DOUBLE_EQ(tensor.sum().template item<double>(), sum(batch.sample_indices));
    EXPECT_DOUBLE_EQ(batch.max().template item<double>(),
                     static_cast<double>(*std::max_element(batch.sample_indices.begin(),
                                                           batch.sample_indices.end())));
  });
}

TEST_F(Wrap, SharedDataSetsWorkAsBefore) {
  check(torch::data::datasets::make_shared_dataset<Singles>(),
        [](std::vector<Example<>>& batch) { EXPECT_FALSE(batch.empty()); });
}

TEST_F(Wrap, TheHandlerMayGoBeforeTheLoader) {
  auto handler = std::make_unique<Handler>(
      PrunerOptions{.num_samples = 12, .num_epochs = 1, .policy = {"none"}});
  const auto options = torch::data::DataLoaderOptions(5).workers(2);
  auto loader =
      torch::data::make_data_loader(handler->wrap(Singles()), handler->sampler(options), options);
  handler.reset();
  std::size_t count = 0;
  for (auto& batch : *loader) count += batch.size();
  EXPECT_EQ(count, 12);
}

}  // namespace tamis::libtorch::dataset_test
