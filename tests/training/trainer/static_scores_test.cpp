// Static methods: the scores are what their papers define, and the subset stays.
#include "training/trainer/static_scores.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "runs/run.h"
#include "support/scratch_folder.h"
#include "support/tiny_run.h"
#include "tamis/smallest_sum.h"
#include "training/data/batch.h"
#include "training/models/model_names.h"
#include "training/trainer/sample_gradients.h"

namespace tamis::training::static_scores_test {

// A model that is no longer at its initial weights.
std::shared_ptr<Model> some_model(const std::string& name, const Dataset& data) {
  RunConfig config = test::tiny_config();
  config.model.name = name;
  config.training.channels_last = false;
  auto model = make_initial_model(config, data);
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : model->parameters()) {
    if (parameter.requires_grad()) parameter.add_(torch::randn_like(parameter), 0.1);
  }
  for (const auto& buffer : model->named_buffers()) {
    if (buffer.key().ends_with("running_mean")) buffer.value().normal_(0.0, 0.1);
  }
  return model;
}

// One sample after the other, with plain autograd.
double explicit_gradient_norm(Model& model, const Dataset& data, SampleIndex sample,
                              double label_smoothing) {
  model.eval();
  model.zero_grad();
  const Batch batch = make_batch(data, std::vector<SampleIndex>{sample});
  torch::nn::functional::cross_entropy(
      model.forward(batch.data), batch.target,
      torch::nn::functional::CrossEntropyFuncOptions().label_smoothing(label_smoothing))
      .backward();
  double sum = 0.0;
  for (const torch::Tensor& parameter : model.parameters()) {
    if (!parameter.grad().defined()) continue;
    sum += parameter.grad().to(torch::kDouble).square().sum().item<double>();
  }
  return std::sqrt(sum);
}

TEST(StaticScores, GrandIsTheNormOfAnExplicitPerSampleGradient) {
  const Dataset& data = test::tiny_data().train;
  std::vector<SampleIndex> samples(9);
  std::iota(samples.begin(), samples.end(), SampleIndex{20});
  for (const std::string& name : model_names()) {
    const auto model = some_model(name, data);
    const auto norms = gradient_norms(*model, make_batch(data, samples), 0.1);
    ASSERT_EQ(norms.size(), samples.size());
    for (std::size_t k = 0; k < samples.size(); ++k) {
      const double expected = explicit_gradient_norm(*model, data, samples[k], 0.1);
      EXPECT_NEAR(norms[k], expected, 1e-5 * std::max(1.0, expected)) << name;
    }
  }
}

TEST(StaticScores, El2nIsTheNormOfSoftmaxMinusLabel) {
  const Dataset& data = test::tiny_data().train;
  const auto model = some_model("small-cnn", data);
  const auto scores = measure_el2n(*model, data);
  ASSERT_EQ(scores.size(), data.size());
  model->eval();
  for (const SampleIndex i : {0, 1, 57, 119}) {
    const Batch batch = make_batch(data, std::vector<SampleIndex>{i});
    const torch::Tensor logits = model->forward(batch.data)[0].to(torch::kDouble);
    double total = 0.0;
    for (std::int64_t c = 0; c < 4; ++c) total += std::exp(logits[c].item<double>());
    double sum = 0.0;
    for (std::int64_t c = 0; c < 4; ++c) {
      const double target = batch.target.item<std::int64_t>() == c ? 1.0 : 0.0;
      const double error = std::exp(logits[c].item<double>()) / total - target;
      sum += error * error;
    }
    EXPECT_NEAR(scores[static_cast<std::size_t>(i)], std::sqrt(sum), 1e-5);
  }
}

// Hessian and gradients of the mean loss by the last layer, from autograd.
TEST(StaticScores, InfluencesSolveTheLastLayersHessian) {
  const Dataset data = test::tiny_split(30, 5);
  constexpr double kDamping = 0.01;
  for (const char* name : {"small-cnn", "fast-cnn"}) {
    const auto model = some_model(name, data);
    const Influences influences = measure_influences(*model, data, kDamping);
    model->eval();
    std::vector<SampleIndex> all(30);
    std::iota(all.begin(), all.end(), SampleIndex{0});
    const Batch batch = make_batch(data, all);
    const torch::nn::Linear layer = model->last_layer();
    torch::Tensor inputs;
    torch::Tensor weight;
    {
      const torch::NoGradGuard no_grad;
      inputs = model->features(batch.data).to(torch::kDouble);
      weight = layer->weight.to(torch::kDouble);
      if (layer->bias.defined()) {
        inputs = torch::cat({inputs, torch::ones({30, 1}, torch::kDouble)}, 1);
        weight = torch::cat({weight, layer->bias.to(torch::kDouble).unsqueeze(1)}, 1);
      }
    }
    torch::Tensor flat = weight.flatten().clone().requires_grad_(true);
    const auto losses = torch::nn::functional::cross_entropy(
        inputs.mm(flat.view_as(weight).t()), batch.target,
        torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
    const torch::Tensor gradient =
        torch::autograd::grad({losses.mean()}, {flat}, {}, true, true)[0];
    std::vector<torch::Tensor> rows;
    for (std::int64_t k = 0; k < flat.numel(); ++k) {
      rows.push_back(torch::autograd::grad({gradient[k]}, {flat}, {}, true)[0]);
    }
    const torch::Tensor hessian =
        torch::stack(rows) + kDamping * torch::eye(flat.numel(), torch::kDouble);
    ASSERT_EQ(influences.dimension, static_cast<std::size_t>(flat.numel()));
    for (const std::int64_t i : {0, 13, 29}) {
      const torch::Tensor own = torch::autograd::grad({losses[i]}, {flat}, {}, true)[0];
      const torch::Tensor expected =
          torch::linalg_solve(hessian, own.unsqueeze(1)).squeeze(1) / 30.0;
      const torch::Tensor found =
          torch::tensor(std::vector<float>(influences.values.begin() + i * flat.numel(),
                                           influences.values.begin() + (i + 1) * flat.numel()))
              .to(torch::kDouble);
      EXPECT_TRUE(torch::allclose(found, expected, 1e-4, 1e-6)) << name << " " << i;
    }
  }
}

class StaticMethod : public ::testing::TestWithParam<const char*> {};

RunConfig static_config(const std::string& method) {
  RunConfig config = test::tiny_config(method);
  config.training.epochs = 4;
  return config;
}

TEST_P(StaticMethod, TrainsFromScratchOnOneSubsetAndCountsTheScoring) {
  const test::ScratchFolder scratch;
  const RunConfig config =
      static_config(std::string(GetParam()) + ":prune-ratio=0.25,score-epochs=2");
  struct Seen final : TrainingObserver {
    std::map<std::uint64_t, std::set<SampleIndex>> samples;
    void on_step(const StepInfo& step) override {
      samples[step.epoch].insert(step.indices.begin(), step.indices.end());
    }
  } seen;
  Trainer trainer = test::start(config, scratch / "run");
  ASSERT_EQ(trainer.run(seen, {}), Outcome::finished);
  ASSERT_EQ(seen.samples.size(), 4U);
  for (const auto& [epoch, samples] : seen.samples) {
    EXPECT_EQ(samples.size(), 90U);
    EXPECT_EQ(samples, seen.samples[0]);
  }
  const runs::RunData run = runs::read_run(scratch / "run");
  EXPECT_GT(run.epochs[0].score_seconds, 0.0);
  EXPECT_GT(run.epochs[0].train_seconds, run.epochs[0].score_seconds);
  EXPECT_EQ(run.epochs[1].score_seconds, 0.0);
  EXPECT_DOUBLE_EQ(runs::summarize_run(run).pruned_share, 0.25);
}

TEST_P(StaticMethod, ContinuesBitForBitWhereverItWasStopped) {
  const test::ScratchFolder scratch;
  const RunConfig config = static_config(std::string(GetParam()) + ":score-epochs=2");
  Trainer whole = test::start(config, scratch / "whole");
  test::run_quietly(whole);
  for (const int steps : {3, 20, 30}) {  // while it scores, and later
    const auto path = scratch / std::to_string(steps);
    {
      Trainer begun = test::start(config, path);
      ASSERT_EQ(test::run_quietly(begun, test::stop_after(steps)), Outcome::interrupted);
    }
    Trainer resumed = test::resume(path);
    ASSERT_EQ(test::run_quietly(resumed), Outcome::finished);
    EXPECT_TRUE(test::same_bits(test::weights_of(whole), test::weights_of(resumed))) << steps;
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, StaticMethod,
                         ::testing::Values("el2n", "grand", "dp", "forgetting"),
                         [](const auto& one) { return std::string(one.param); });

TEST(StaticMethods, RefuseToBeRecorded) {
  const test::ScratchFolder scratch;
  RunConfig config = static_config("el2n");
  config.num_recorded = 10;
  EXPECT_THROW(test::start(config, scratch / "run"), std::invalid_argument);
}

}  // namespace tamis::training::static_scores_test
