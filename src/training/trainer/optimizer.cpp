#include "training/trainer/optimizer.h"

#include <torch/torch.h>

#include <cmath>
#include <numbers>
#include <tuple>
#include <utility>

#include "training/models/model.h"

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

ParameterGroups parameter_groups(const Model& model) {
  ParameterGroups groups;
  for (const auto& item : model.named_parameters()) {
    groups[model.learning_rate_factor(item.key())].push_back(item.value());
  }
  return groups;
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const ParameterGroups& groups,
                                                        const TrainingConfig& config) {
  const auto adamw_options = [&](double factor) {
    return torch::optim::AdamWOptions(factor * config.learning_rate)
        .betas(std::make_tuple(config.momentum, kBeta2))
        .weight_decay(config.weight_decay / factor);
  };
  const auto sgd_options = [&](double factor) {
    return torch::optim::SGDOptions(factor * config.learning_rate)
        .momentum(config.momentum)
        .weight_decay(config.weight_decay / factor)
        .nesterov(config.momentum > 0.0);
  };
  const bool is_adamw = config.optimizer == OptimizerKind::adamw;
  std::vector<torch::optim::OptimizerParamGroup> made;
  for (const auto& [factor, parameters] : groups) {
    std::unique_ptr<torch::optim::OptimizerOptions> options;
    if (is_adamw) {
      options = std::make_unique<torch::optim::AdamWOptions>(adamw_options(factor));
    } else {
      options = std::make_unique<torch::optim::SGDOptions>(sgd_options(factor));
    }
    made.emplace_back(parameters, std::move(options));
  }
  if (is_adamw) return std::make_unique<torch::optim::AdamW>(std::move(made), adamw_options(1.0));
  return std::make_unique<torch::optim::SGD>(std::move(made), sgd_options(1.0));
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

void set_learning_rate(torch::optim::Optimizer& optimizer, const ParameterGroups& groups,
                       double learning_rate) {
  auto group = optimizer.param_groups().begin();
  for (const auto& [factor, parameters] : groups) {
    group->options().set_lr(factor * learning_rate);
    ++group;
  }
}

}  // namespace tamis::training
