#include "training/trainer/static_scores.h"

#include <torch/torch.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "base/check.h"
#include "base/rounding.h"
#include "tamis/pruner.h"
#include "tamis/registry.h"
#include "tamis/smallest_sum.h"
#include "training/models/model.h"
#include "training/trainer/batches.h"
#include "training/trainer/forgetting_events.h"
#include "training/trainer/optimizer.h"
#include "training/trainer/sample_gradients.h"
#include "training/trainer/trainer.h"

namespace tamis::training {

namespace {

constexpr std::size_t kScoredAtOnce = 500;
// Floats that per-sample gradients, or all influences, may take.
constexpr std::int64_t kGradientFloats = std::int64_t{1} << 24U;
constexpr double kInfluenceFloats = 1.5e9;

// Calls use(batch) for all samples, in order and as they are.
template <typename Use>
void for_each_batch(const Dataset& data, std::size_t batch_size, Use use) {
  std::vector<SampleIndex> indices;
  for (std::size_t begin = 0; begin < data.size(); begin += batch_size) {
    indices.resize(std::min(batch_size, data.size() - begin));
    std::iota(indices.begin(), indices.end(), static_cast<SampleIndex>(begin));
    use(make_batch(data, indices));
  }
}

// The first epochs of the run on the full data. Null if `stop` asked to stop.
std::shared_ptr<Model> train_first_epochs(const RunConfig& config, const Dataset& data,
                                          std::uint64_t num_epochs, ForgettingEvents& events,
                                          const StopRequest& stop) {
  const TrainingConfig& settings = config.training;
  auto model = make_initial_model(config, data);
  const ParameterGroups groups = parameter_groups(*model);
  const auto optimizer = make_optimizer(groups, settings);
  Pruner order({.num_samples = data.size(),
                .num_epochs = settings.epochs,
                .policy = {"none"},
                .seed = settings.seed});
  for (std::uint64_t epoch = 0; epoch < num_epochs; ++epoch) {
    model->train();
    const EpochPlan& plan = order.start_epoch(epoch);
    while (order.position() < plan.size()) {
      if (stop && stop()) return nullptr;
      const std::size_t begin = order.position();
      std::vector<SampleIndex> samples(batch_length(plan.size() - begin, settings.batch_size));
      plan.copy_to(begin, samples);
      set_learning_rate(*optimizer, groups, learning_rate_at(settings, order.progress()));
      const Batch batch = load_batch(data, samples, settings, epoch);
      clear_gradients(*model);
      const torch::Tensor logits = model->forward(batch.data);
      torch::nn::functional::cross_entropy(
          logits, batch.target,
          torch::nn::functional::CrossEntropyFuncOptions().label_smoothing(
              settings.label_smoothing))
          .backward();
      optimizer->step();
      const torch::Tensor is_right = logits.detach().argmax(1).eq(batch.target).contiguous();
      for (std::size_t k = 0; k < samples.size(); ++k) {
        events.visit(static_cast<std::size_t>(samples[k]), is_right.data_ptr<bool>()[k]);
      }
      order.set_position(begin + samples.size());
    }
  }
  return model;
}

// Inputs of the last layer, with a 1 for its bias if it has one, and the errors of its outputs.
struct LastLayer {
  torch::Tensor inputs;  // [N, D], double
  torch::Tensor errors;  // softmax - onehot, [N, C], double
  torch::Tensor probabilities;
};

LastLayer run_last_layer(Model& model, const Dataset& data) {
  const torch::NoGradGuard no_grad;
  model.eval();
  torch::nn::Linear layer = model.last_layer();
  std::vector<torch::Tensor> inputs;
  std::vector<torch::Tensor> probabilities;
  for_each_batch(data, kScoredAtOnce, [&](const Batch& batch) {
    const torch::Tensor features = model.features(batch.data);
    probabilities.push_back(torch::softmax(layer(features), 1).to(torch::kDouble));
    const torch::Tensor input = features.to(torch::kDouble);
    inputs.push_back(layer->bias.defined()
                         ? torch::cat({input, torch::ones({input.size(0), 1}, input.options())}, 1)
                         : input);
  });
  LastLayer result{
      .inputs = torch::cat(inputs), .errors = {}, .probabilities = torch::cat(probabilities)};
  result.errors =
      result.probabilities - torch::one_hot(data.labels, data.num_classes).to(torch::kDouble);
  return result;
}

// Of the mean loss by the weights, class by class: blocks X^T diag(p_a (1[a = b] - p_b)) X / N.
torch::Tensor hessian_of(const LastLayer& layer) {
  const std::int64_t num_classes = layer.probabilities.size(1);
  const std::int64_t width = layer.inputs.size(1);
  torch::Tensor hessian = torch::empty({num_classes * width, num_classes * width}, torch::kDouble);
  for (std::int64_t a = 0; a < num_classes; ++a) {
    for (std::int64_t b = 0; b <= a; ++b) {
      const torch::Tensor p = layer.probabilities.select(1, a);
      const torch::Tensor weight =
          (a == b ? p : torch::zeros_like(p)) - p * layer.probabilities.select(1, b);
      const torch::Tensor block = layer.inputs.t().mm(layer.inputs * weight.unsqueeze(1)) /
                                  static_cast<double>(layer.inputs.size(0));
      hessian.narrow(0, a * width, width).narrow(1, b * width, width).copy_(block);
      hessian.narrow(0, b * width, width).narrow(1, a * width, width).copy_(block.t());
    }
  }
  return hessian;
}

// 1 for what stays.
std::vector<float> choose_by_influence(Model& model, const RunConfig& config, const Dataset& data) {
  // The Hessian of a softmax is singular without it.
  constexpr double kLeastDamping = 1e-4;
  const Influences influences =
      measure_influences(model, data, std::max(kLeastDamping, config.training.weight_decay));
  const Method& method = config.method;
  const double ratio = method.target_prune ? *method.target_prune
                                           : method.policy.options.find("prune_ratio")->second;
  const std::size_t num_kept = detail::floor_share(1.0 - ratio, data.size());
  const Bitmap removed = choose_smallest_sum(influences.values, influences.dimension,
                                             data.size() - num_kept, config.training.seed);
  std::vector<float> scores(data.size());
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = removed.test(i) ? 0.0F : 1.0F;
  return scores;
}

}  // namespace

bool is_static(const Method& method) { return find_scorer(method.score.name).is_given; }

std::vector<float> measure_el2n(Model& model, const Dataset& data) {
  const torch::NoGradGuard no_grad;
  model.eval();
  std::vector<float> scores;
  for_each_batch(data, kScoredAtOnce, [&](const Batch& batch) {
    const torch::Tensor errors = torch::softmax(model.forward(batch.data), 1) -
                                 torch::one_hot(batch.target, data.num_classes);
    const torch::Tensor norms = errors.square().sum(1).sqrt().contiguous();
    scores.insert(scores.end(), norms.data_ptr<float>(), norms.data_ptr<float>() + norms.numel());
  });
  return scores;
}

std::vector<float> measure_grand(const Model& model, const RunConfig& config, const Dataset& data) {
  RunConfig plain = config;
  plain.training.channels_last = false;
  plain.training.precision = Precision::float32;
  const auto copy = make_initial_model(plain, data);
  {
    const torch::NoGradGuard no_grad;
    const auto copy_all = [](const auto& from, const auto& to) {
      for (const auto& item : from) to.find(item.key())->copy_(item.value());
    };
    copy_all(model.named_parameters(), copy->named_parameters());
    copy_all(model.named_buffers(), copy->named_buffers());
  }
  const std::int64_t batch_size =
      std::clamp<std::int64_t>(kGradientFloats / num_parameters(*copy), 1, 128);
  std::vector<float> scores;
  for_each_batch(data, static_cast<std::size_t>(batch_size), [&](const Batch& batch) {
    const auto norms = gradient_norms(*copy, batch, config.training.label_smoothing);
    scores.insert(scores.end(), norms.begin(), norms.end());
  });
  return scores;
}

Influences measure_influences(Model& model, const Dataset& data, double damping) {
  const torch::NoGradGuard no_grad;
  const LastLayer layer = run_last_layer(model, data);
  const std::int64_t size = layer.inputs.size(1) * layer.errors.size(1);
  if (static_cast<double>(size) * static_cast<double>(data.size()) > kInfluenceFloats) {
    throw std::invalid_argument(
        detail::concat("dp: samples times weights of the last layer must be at most ",
                       kInfluenceFloats, ", got ", data.size(), " times ", size,
                       "; a model with a smaller last layer, such as fast-cnn, or --limit helps"));
  }
  torch::Tensor hessian = hessian_of(layer);
  hessian.diagonal().add_(damping);
  const torch::Tensor factor = std::get<0>(torch::linalg_cholesky_ex(hessian, false, true));
  const auto num_samples = static_cast<std::int64_t>(data.size());
  Influences influences{.values = std::vector<float>(static_cast<std::size_t>(num_samples * size)),
                        .dimension = static_cast<std::size_t>(size)};
  torch::Tensor all = torch::from_blob(influences.values.data(), {num_samples, size});
  for (std::int64_t begin = 0; begin < num_samples; begin += kScoredAtOnce) {
    const auto count = std::min<std::int64_t>(kScoredAtOnce, num_samples - begin);
    // The gradient by the weights of class c is error c times the inputs.
    const torch::Tensor gradients = (layer.errors.narrow(0, begin, count).unsqueeze(2) *
                                     layer.inputs.narrow(0, begin, count).unsqueeze(1))
                                        .reshape({count, size});
    all.narrow(0, begin, count)
        .copy_(torch::cholesky_solve(gradients.t(), factor).t() / static_cast<double>(num_samples));
  }
  return influences;
}

std::optional<std::vector<float>> measure_static_scores(const RunConfig& config,
                                                        const Dataset& data,
                                                        const StopRequest& stop) {
  const Spec& score = config.method.score;
  const auto wanted = static_cast<std::uint64_t>(score.options.find("score_epochs")->second);
  ForgettingEvents events(data.size());
  const auto model =
      train_first_epochs(config, data, std::min(wanted, config.training.epochs), events, stop);
  if (!model) return std::nullopt;
  if (score.name == "el2n") return measure_el2n(*model, data);
  if (score.name == "grand") return measure_grand(*model, config, data);
  if (score.name == "influence") return choose_by_influence(*model, config, data);
  if (score.name == "forgetting") return events.scores();
  throw std::logic_error("no way to measure the score " + score.name);
}

}  // namespace tamis::training
