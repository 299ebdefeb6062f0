// What the LibTorch adapter's update costs beside the core's own: nanoseconds per batch, best of
// five epochs, 1,000,000 samples in batches of 128, weight 1. And what watching outputs adds to a
// step, on one thread: microseconds, the least of many steps. Usage: build/bin/libtorch_bench
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <vector>

#include "tamis/libtorch/handler.h"
#include "tamis/libtorch/output_watch.h"

namespace {

constexpr std::size_t kSamples = 1'000'000;
constexpr std::size_t kBatch = 128;
constexpr int kEpochs = 5;

using Clock = std::chrono::steady_clock;

// Batches cost next to nothing to make.
struct NoData : torch::data::datasets::BatchDataset<NoData, torch::data::Example<>> {
  torch::data::Example<> get_batch(torch::ArrayRef<std::size_t>) override { return example; }
  torch::optional<std::size_t> size() const override { return kSamples; }
  torch::data::Example<> example{torch::zeros(1), torch::zeros(1)};
};

tamis::PrunerOptions options() {
  return {.num_samples = kSamples,
          .num_epochs = kEpochs,
          .policy = {"none"},
          .score = tamis::Spec{"batch-loss"}};
}

// The least time per batch of an epoch, of the calls only. `run` calls its argument around each.
template <typename RunEpoch>
double best_ns(const RunEpoch& run_epoch) {
  double best = std::numeric_limits<double>::infinity();
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    Clock::duration sum{};
    std::size_t count = 0;
    run_epoch(epoch, [&](const auto& call) {
      const auto start = Clock::now();
      call();
      sum += Clock::now() - start;
      ++count;
    });
    best = std::min(
        best, std::chrono::duration<double, std::nano>(sum).count() / static_cast<double>(count));
  }
  return best;
}

// The least time of a step without and with watching, in turns, so that both see the same machine.
struct StepTimes {
  double plain_us = std::numeric_limits<double>::infinity();
  double watched_us = std::numeric_limits<double>::infinity();
};

// `forward` makes the logits. The step is everything from there to the end of backward(), and what
// a step with watched outputs does besides: norms, mixed weights, the observation.
template <typename Forward>
StepTimes step_times(std::int64_t num_classes, int num_steps, const Forward& forward) {
  const auto labels = torch::randint(num_classes, {static_cast<std::int64_t>(kBatch)});
  tamis::Pruner pruner({.num_samples = kBatch,
                        .num_epochs = 1,
                        .policy = {"none"},
                        .score = tamis::Spec{"output-gradient"}});
  pruner.start_epoch(0);
  std::vector<float> weights(kBatch, 1.0F);
  std::fill(weights.begin(), weights.begin() + kBatch / 2, 2.0F);
  StepTimes times;
  for (int k = 0; k < 2 * num_steps; ++k) {
    const bool is_watched = k % 2 == 1;
    const auto start = Clock::now();
    tamis::libtorch::OutputWatch watch;
    torch::Tensor logits = forward();
    if (is_watched) {
      logits = watch.watch(logits);
      watch.bind(kBatch, weights);
    }
    const torch::Tensor loss = torch::nn::functional::cross_entropy(logits, labels);
    loss.backward();
    if (is_watched) pruner.observe(0, loss.item<double>(), watch.norms());
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    double& best = is_watched ? times.watched_us : times.plain_us;
    best = std::min(best, us);
  }
  return times;
}

StepTimes logit_times(std::int64_t num_classes) {
  const torch::Tensor outputs =
      torch::randn({static_cast<std::int64_t>(kBatch), num_classes}).requires_grad_();
  return step_times(num_classes, 2000, [&] { return outputs * 1.0; });
}

// The hook does not see the model, so its cost is measured on the logits alone and compared with a
// step of the model: the difference of two such steps is lost in their noise.
void measure_watching() {
  const StepTimes large = logit_times(1000);
  std::printf("watching: 128 x 1000 logits        %8.1f us added\n",
              large.watched_us - large.plain_us);
  const StepTimes small = logit_times(10);
  torch::nn::Sequential model(
      torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 32, 3).padding(1)), torch::nn::ReLU(),
      torch::nn::MaxPool2d(2), torch::nn::Conv2d(torch::nn::Conv2dOptions(32, 64, 3).padding(1)),
      torch::nn::ReLU(), torch::nn::MaxPool2d(2), torch::nn::Flatten(),
      torch::nn::Linear(64 * 7 * 7, 128), torch::nn::ReLU(), torch::nn::Linear(128, 10));
  const torch::Tensor images = torch::randn({static_cast<std::int64_t>(kBatch), 1, 28, 28});
  const double step = step_times(10, 30, [&] { return model->forward(images); }).plain_us;
  const double added = small.watched_us - small.plain_us;
  std::printf(
      "watching: 128 x 10 logits          %8.1f us added, %.3f %% of a small CNN's %.0f us\n",
      added, 100.0 * added / step, step);
}

}  // namespace

int main() {
  torch::set_num_threads(1);
  const torch::Tensor loss = torch::full({}, 1.5);
  volatile double sink = 0.0;

  // In a loop like the adapter's: what a loader does between two batches makes caches cold.
  tamis::Pruner pruner(options());
  tamis::libtorch::Handler walker(options());
  auto walk = walker.loader(NoData(), kBatch);
  const double core = best_ns([&](int epoch, const auto& timed) {
    const tamis::EpochPlan& plan = pruner.start_epoch(static_cast<std::uint64_t>(epoch));
    std::size_t begin = 0;
    for (auto& batch : walk) {
      (void)batch;
      const std::size_t count = std::min(kBatch, plan.size() - begin);
      timed([&] {
        pruner.observe(begin, count, 1.5);
        sink = plan.mean_weight(begin, count);
      });
      begin += count;
    }
  });

  const double item = best_ns([&](int, const auto& timed) {
    for (std::size_t k = 0; k < kSamples / kBatch; ++k) timed([&] { sink = loss.item<double>(); });
  });

  tamis::libtorch::Handler handler(options());
  auto loader = handler.loader(NoData(), kBatch);
  const double update = best_ns([&](int, const auto& timed) {
    for (auto& batch : loader) {
      (void)batch;
      timed([&] { handler.update(loss); });
    }
  });

  std::printf("core: observe and mean_weight  %8.0f ns\n", core);
  std::printf("torch: reading the loss (item) %8.0f ns\n", item);
  std::printf("adapter: update(loss)          %8.0f ns, %.2f x the core\n", update, update / core);
  measure_watching();
  return 0;
}
