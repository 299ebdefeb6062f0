// Trains a small classifier with dynamic data pruning. The three lines that pruning adds to an
// ordinary LibTorch training loop are marked.
#include <torch/torch.h>

#include <iostream>
#include <optional>

#include "tamis/libtorch/handler.h"

// Points in the plane; the class is the quadrant, and one label in ten is wrong.
struct Quadrants : torch::data::datasets::Dataset<Quadrants> {
  torch::Tensor points = torch::randn({4096, 2});
  torch::Tensor labels =
      (points.select(1, 0) > 0).to(torch::kLong) * 2 + (points.select(1, 1) > 0).to(torch::kLong);

  Quadrants() {
    const torch::Tensor wrong = torch::rand({4096}) < 0.1;
    labels = torch::where(wrong, torch::randint(4, {4096}, torch::kLong), labels);
  }
  torch::data::Example<> get(size_t i) override {
    return {points[static_cast<int64_t>(i)], labels[static_cast<int64_t>(i)]};
  }
  std::optional<size_t> size() const override { return 4096; }
};

int main() {
  torch::manual_seed(1);
  const int64_t num_epochs = 8;
  auto dataset = Quadrants().map(torch::data::transforms::Stack<>());
  const auto options = torch::data::DataLoaderOptions(64).workers(2);
  torch::nn::Sequential model(torch::nn::Linear(2, 32), torch::nn::ReLU(),
                              torch::nn::Linear(32, 4));
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));

  // 1: what to prune with: InfoBatch on the batch loss.
  tamis::libtorch::Handler handler({.num_samples = *dataset.size(),
                                    .num_epochs = num_epochs,
                                    .policy = {"infobatch"},
                                    .score = tamis::Spec{"batch-loss"}});
  // 2: torch's loader, which draws from the plan.
  auto loader = handler.loader(dataset, options);

  for (int64_t epoch = 0; epoch < num_epochs; ++epoch) {
    double correct = 0;
    for (auto& batch : loader) {
      const torch::Tensor logits = model->forward(batch.data);
      torch::Tensor loss = torch::nn::functional::cross_entropy(logits, batch.target);
      loss = handler.update(loss);  // 3: before the backward pass.
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      correct += (logits.argmax(1) == batch.target).sum().item<double>();
    }
    const auto used = static_cast<double>(handler.pruner().plan()->size());
    std::cout << "epoch " << epoch << ": " << used << " samples, " << correct / used << " right\n";
  }
  std::cout << "pruned " << 100 * handler.pruner().pruned_share() << " % of all samples\n";
}
