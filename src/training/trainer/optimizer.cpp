#include "training/trainer/optimizer.h"

#include <torch/torch.h>

#include <cmath>
#include <numbers>
#include <tuple>
#include <utility>

namespace tamis::training {

namespace {

constexpr double kFirstDivisor = 25.0;       // the peak over the first learning rate of one-cycle
constexpr double kLastDivisor = 25.0 * 1e4;  // the peak over the last one
constexpr double kBeta2 = 0.999;

// From `begin` at share 0 to `end` at share 1 along half a cosine.
double half_cosine(double begin, double end, double share) {
  return end + (begin - end) * 0.5 * (1.0 + std::cos(std::numbers::pi * share));
}

}  // namespace

std::unique_ptr<torch::optim::Optimizer> make_optimizer(std::vector<torch::Tensor> parameters,
                                                        const TrainingConfig& config) {
  if (config.optimizer == OptimizerKind::adamw) {
    return std::make_unique<torch::optim::AdamW>(
        std::move(parameters), torch::optim::AdamWOptions(config.learning_rate)
                                   .betas(std::make_tuple(config.momentum, kBeta2))
                                   .weight_decay(config.weight_decay));
  }
  return std::make_unique<torch::optim::SGD>(std::move(parameters),
                                             torch::optim::SGDOptions(config.learning_rate)
                                                 .momentum(config.momentum)
                                                 .weight_decay(config.weight_decay)
                                                 .nesterov(config.momentum > 0.0));
}

double learning_rate_at(const TrainingConfig& config, double progress) {
  const double peak = config.learning_rate;
  if (config.schedule == ScheduleKind::constant) return peak;
  const bool one_cycle = config.schedule == ScheduleKind::one_cycle;
  if (progress < config.warmup) {
    const double share = progress / config.warmup;
    return one_cycle ? half_cosine(peak / kFirstDivisor, peak, share) : peak * share;
  }
  const double share =
      config.warmup < 1.0 ? (progress - config.warmup) / (1.0 - config.warmup) : 0.0;
  return half_cosine(peak, one_cycle ? peak / kLastDivisor : 0.0, share);
}

void set_learning_rate(torch::optim::Optimizer& optimizer, double learning_rate) {
  for (auto& group : optimizer.param_groups()) group.options().set_lr(learning_rate);
}

}  // namespace tamis::training
