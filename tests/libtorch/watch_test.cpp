// Watched outputs: norms and exact weights from the backward pass of a scalar loss.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "support/scratch_folder.h"
#include "tamis/libtorch/handler.h"
#include "tamis/libtorch/output_watch.h"
#include "tamis/recording.h"

namespace tamis::libtorch::watch_test {

namespace F = torch::nn::functional;
using ::testing::HasSubstr;

constexpr std::int64_t kRows = 8;

// InfoBatch in epoch 1: samples 0 to 9 were easy, half of them are left with weight 2; the others
// have weight 1.
struct Rescaled {
  Handler handler;
  std::vector<SampleIndex> batch;  // four of weight 2, four of weight 1, mixed
  torch::Tensor weights;           // float64

  explicit Rescaled(const std::string& score = "last-batch-loss")
      : handler(PrunerOptions{.num_samples = 20,
                              .num_epochs = 10,
                              .policy = {"infobatch", {{"prune_ratio", 0.5}}},
                              .score = Spec{score}}) {
    handler.set_epoch(0);
    auto& pruner = const_cast<Pruner&>(handler.pruner());
    std::vector<SampleIndex> all(20);
    std::iota(all.begin(), all.end(), 0);
    const std::vector<float> norms(10, 1.0F);
    const std::span<const SampleIndex> span(all);
    pruner.observe(span.first(10), 0.5, norms);
    pruner.observe(span.last(10), 1.5, norms);
    handler.set_epoch(1);
    std::vector<SampleIndex> easy;
    std::vector<SampleIndex> hard;
    for (const auto index : handler.pruner().plan()->order()) {
      (index < 10 ? easy : hard).push_back(SampleIndex{index});
    }
    batch = {easy[0], hard[0], hard[1], easy[1], easy[2], hard[2], hard[3], easy[3]};
    std::vector<double> values;
    for (const SampleIndex index : batch) {
      values.push_back(handler.pruner().plan()->weight_of(index));
    }
    weights = torch::tensor(values, torch::kDouble);
  }
};

torch::nn::Sequential make_model(torch::Dtype type, bool has_norm) {
  torch::manual_seed(3);
  torch::nn::Sequential model(torch::nn::Linear(6, 10));
  if (has_norm) model->push_back(torch::nn::BatchNorm1d(10));
  model->push_back(torch::nn::ReLU());
  model->push_back(torch::nn::Linear(10, 5));
  model->to(type);
  return model;
}

struct Problem {
  std::string name;
  bool has_norm = false;
  // One loss per sample, from the model's outputs.
  std::function<torch::Tensor(const torch::Tensor& outputs)> losses;
};

std::vector<Problem> problems() {
  const auto labels = torch::tensor({0, 1, 2, 3, 4, 0, 1, 2});
  const auto cross_entropy = [labels](const torch::Tensor& z) {
    return F::cross_entropy(z, labels, F::CrossEntropyFuncOptions().reduction(torch::kNone));
  };
  const auto squared_error = [](const torch::Tensor& z) {
    return (z - torch::linspace(-1, 1, 5, z.options())).square().mean(1);
  };
  // As a detector: classes, boxes and one score for each.
  const auto three_parts = [labels](const torch::Tensor& z) {
    const auto classes = F::cross_entropy(z.slice(1, 0, 5), labels,
                                          F::CrossEntropyFuncOptions().reduction(torch::kNone));
    const auto boxes = F::smooth_l1_loss(z.slice(1, 1, 4), torch::ones_like(z.slice(1, 1, 4)),
                                         F::SmoothL1LossFuncOptions().reduction(torch::kNone))
                           .sum(1);
    const auto objects = torch::softplus(-z.select(1, 4));
    return 0.5 * classes + 7.5 * boxes + 1.5 * objects;
  };
  return {{"cross-entropy", false, cross_entropy},
          {"squared error", false, squared_error},
          {"three parts", false, three_parts},
          {"batch norm", true, cross_entropy}};
}

std::vector<torch::Tensor> gradients_of(torch::nn::Sequential& model) {
  std::vector<torch::Tensor> gradients;
  for (auto& parameter : model->parameters()) {
    gradients.push_back(parameter.grad().clone());
    parameter.mutable_grad().reset();
  }
  return gradients;
}

double relative_difference(const std::vector<torch::Tensor>& a,
                           const std::vector<torch::Tensor>& b) {
  double difference = 0.0;
  double size = 0.0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    difference += (a[k] - b[k]).square().sum().item<double>();
    size += b[k].square().sum().item<double>();
  }
  return std::sqrt(difference / size);
}

TEST(ExactWeights, GiveTheGradientOfTheWeightedMeanFromAScalarLoss) {
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    for (const Problem& problem : problems()) {
      Rescaled run;
      auto model = make_model(type, problem.has_norm);
      const torch::Tensor inputs = torch::randn({kRows, 6}, type);
      const torch::Tensor outputs = run.handler.watch(model->forward(inputs));
      run.handler.update(problem.losses(outputs).mean(), run.batch).backward();
      const auto exact = gradients_of(model);

      const torch::Tensor losses = problem.losses(model->forward(inputs));
      (losses * run.weights.to(type)).mean().backward();
      const auto wanted = gradients_of(model);
      EXPECT_LT(relative_difference(exact, wanted), type == torch::kFloat ? 1e-6 : 1e-12)
          << problem.name;

      // The authors' way is not exact, which is why this test can fail.
      run.handler.set_exact_weights(false);
      const torch::Tensor again = run.handler.watch(model->forward(inputs));
      run.handler.update(problem.losses(again).mean(), run.batch).backward();
      EXPECT_GT(relative_difference(gradients_of(model), wanted), 1e-3) << problem.name;
    }
  }
}

TEST(ExactWeights, WorkForMicroBatchesWhoseGradientsAddUp) {
  Rescaled run;
  auto model = make_model(torch::kDouble, false);
  const torch::Tensor inputs = torch::randn({kRows, 6}, torch::kDouble);
  const auto loss_of = problems()[1].losses;
  for (const std::int64_t begin : {0, 4}) {
    const torch::Tensor outputs =
        run.handler.watch(model->forward(inputs.slice(0, begin, begin + 4)));
    const std::span<const SampleIndex> ids(run.batch);
    const auto part = ids.subspan(static_cast<std::size_t>(begin), 4);
    (run.handler.update(loss_of(outputs).mean(), part) / 2).backward();
  }
  const auto exact = gradients_of(model);
  (loss_of(model->forward(inputs)) * run.weights).mean().backward();
  EXPECT_LT(relative_difference(exact, gradients_of(model)), 1e-12);
}

TEST(ExactWeights, CountAnOutputThatFeedsAnotherOnce) {
  Rescaled run;
  torch::manual_seed(4);
  torch::nn::Linear first(6, 10);
  torch::nn::Linear second(10, 5);
  first->to(torch::kDouble);
  second->to(torch::kDouble);
  const torch::Tensor inputs = torch::randn({kRows, 6}, torch::kDouble);
  const auto loss_of = [](const torch::Tensor& hidden, const torch::Tensor& z) {
    return hidden.square().mean(1) + z.square().mean(1);
  };
  const auto forward = [&] {
    const torch::Tensor hidden = first->forward(inputs);
    return std::vector<torch::Tensor>{hidden, second->forward(hidden.tanh())};
  };
  const auto outputs = run.handler.watch(forward());
  run.handler.update(loss_of(outputs[0], outputs[1]).mean(), run.batch).backward();
  const torch::Tensor exact = first->weight.grad().clone();
  first->zero_grad();
  const auto plain = forward();
  (loss_of(plain[0], plain[1]) * run.weights).mean().backward();
  EXPECT_TRUE(torch::allclose(exact, first->weight.grad(), 1e-12, 1e-14));
}

TEST(ExactWeights, StandOnGradientsOfEveryBackwardPass) {
  Rescaled run;
  auto model = make_model(torch::kDouble, false);
  const torch::Tensor inputs = torch::randn({kRows, 6}, torch::kDouble);
  const auto loss_of = problems()[0].losses;
  const torch::Tensor loss =
      run.handler.update(loss_of(run.handler.watch(model->forward(inputs))).mean(), run.batch);
  loss.backward({}, true);
  const auto first = gradients_of(model);
  const auto observed = run.handler.pruner().num_observations();
  loss.backward();
  EXPECT_EQ(relative_difference(gradients_of(model), first), 0.0);
  EXPECT_EQ(run.handler.pruner().num_observations(), observed) << "observed once";
}

// A handler in epoch 0, where all weights are 1.
Handler make_handler(const Spec& score, std::size_t num_samples = kRows) {
  Handler handler(PrunerOptions{
      .num_samples = num_samples, .num_epochs = 3, .policy = {"trim"}, .score = score});
  handler.set_epoch(0);
  return handler;
}

std::vector<SampleIndex> first_samples() {
  std::vector<SampleIndex> ids(kRows);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

// The scores are the losses shared out by `norms`.
void expect_shares(const Handler& handler, const torch::Tensor& mean_loss,
                   const torch::Tensor& norms, double tolerance) {
  const torch::Tensor wanted =
      mean_loss.to(torch::kDouble) * norms.to(torch::kDouble) / norms.to(torch::kDouble).mean();
  const auto scores = handler.pruner().scores();
  for (std::int64_t k = 0; k < norms.size(0); ++k) {
    const double share = wanted[k].item<double>();
    EXPECT_NEAR(scores[static_cast<std::size_t>(k)], share, tolerance * std::abs(share)) << k;
  }
}

TEST(WatchedNorms, AreEl2nForCrossEntropy) {
  Handler handler = make_handler({"output-gradient"});
  const auto labels = torch::tensor({0, 1, 2, 3, 4, 0, 1, 2});
  torch::Tensor logits = torch::randn({kRows, 5}).requires_grad_();
  const torch::Tensor outputs = handler.watch(logits);
  const torch::Tensor loss = F::cross_entropy(outputs, labels);
  handler.update(loss, first_samples()).backward();
  const torch::Tensor el2n = (logits.detach().softmax(1) - torch::one_hot(labels, 5)).norm(2, 1);
  expect_shares(handler, loss.detach(), el2n, 1e-5);
}

TEST(WatchedNorms, RecoverTheLossesOfACrossEntropyFromItsMean) {
  torch::manual_seed(5);
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    Handler handler = make_handler({"output-gradient", {{"cross_entropy", 1.0}}});
    const auto labels = torch::tensor({0, 1, 2, 3, 4, 0, 1, 2});
    torch::Tensor logits = (2 * torch::randn({kRows, 5})).to(type).requires_grad_();
    const torch::Tensor loss = F::cross_entropy(handler.watch(logits), labels);
    // Scaled behind update, as for mixed precision.
    (handler.update(loss, first_samples()) * 1024).backward();
    const auto each = F::CrossEntropyFuncOptions().reduction(torch::kNone);
    const torch::Tensor losses = F::cross_entropy(logits.detach(), labels, each);
    const auto scores = handler.pruner().scores();
    for (std::int64_t k = 0; k < kRows; ++k) {
      const auto own = losses[k].item<double>();
      EXPECT_NEAR(scores[static_cast<std::size_t>(k)], own, 1e-5 * own);
    }
  }
}

TEST(WatchedNorms, RecoverSquaredErrorsWithPowerTwo) {
  Handler handler = make_handler({"output-gradient", {{"power", 2.0}}});
  torch::Tensor outputs = torch::randn({kRows, 3, 4}).requires_grad_();
  const torch::Tensor errors = handler.watch(outputs).square().mean({1, 2});
  handler.update(errors.mean(), first_samples()).backward();
  const auto scores = handler.pruner().scores();
  for (std::int64_t k = 0; k < kRows; ++k) {
    const auto error = errors[k].item<double>();
    EXPECT_NEAR(scores[static_cast<std::size_t>(k)], error, 1e-5 * error);
  }
}

TEST(WatchedNorms, AddTheSquaresOfAllOutputsAndForwardPasses) {
  Handler handler = make_handler({"output-gradient"});
  torch::Tensor a = torch::randn({kRows, 5}).requires_grad_();
  torch::Tensor b = torch::randn({kRows}).requires_grad_();
  torch::Tensor unused = torch::randn({3, 2}).requires_grad_();
  (void)handler.watch(unused);
  const auto watched = handler.watch(std::vector<torch::Tensor>{a, b});
  const torch::Tensor loss = watched[0].pow(3).abs().sum() + watched[1].exp().sum();
  handler.update(loss, first_samples()).backward();
  const torch::Tensor norms = torch::hypot(a.grad().norm(2, 1), b.grad().abs());
  expect_shares(handler, loss.detach(), norms, 1e-5);
}

TEST(WatchedNorms, DoNotDependOnLossScalingOrHalfPrecision) {
  const torch::Tensor values = torch::randn({kRows, 5});
  std::vector<std::vector<float>> scores;
  for (const double scale : {1.0, 65536.0, 1e-4}) {
    for (const auto type : {torch::kFloat, torch::kBFloat16}) {
      Handler handler = make_handler({"output-gradient"});
      torch::Tensor outputs = values.to(torch::kBFloat16).to(type).requires_grad_();
      const torch::Tensor loss = handler.watch(outputs).to(torch::kFloat).square().mean();
      (handler.update(loss, first_samples()) * scale).backward();
      scores.push_back(handler.pruner().scores());
    }
  }
  for (const auto& other : scores) {
    for (std::size_t k = 0; k < other.size(); ++k) {
      EXPECT_NEAR(other[k], scores[0][k], 0.01 * static_cast<double>(scores[0][k]));
    }
  }
}

TEST(WatchedNorms, AreThoseOfTheLossesWhereWeightsStandOnLosses) {
  Rescaled run("output-gradient");
  torch::Tensor outputs = torch::randn({kRows, 5}, torch::kDouble).requires_grad_();
  const torch::Tensor losses = run.handler.watch(outputs).square().sum(1);
  run.handler.update(losses, run.batch).backward();
  const torch::Tensor norms = 2 * outputs.detach().norm(2, 1);
  const auto scores = run.handler.pruner().scores();
  for (std::size_t k = 0; k < run.batch.size(); ++k) {
    const double share =
        (losses.mean() * norms[static_cast<std::int64_t>(k)] / norms.mean()).item<double>();
    EXPECT_NEAR(scores[static_cast<std::size_t>(run.batch[k])], share, 1e-5 * share);
  }
}

TEST(WatchedNorms, ThatAreNotFiniteAreSkippedAndCounted) {
  Handler handler = make_handler({"output-gradient"});
  torch::Tensor outputs = torch::ones({kRows, 2}).requires_grad_();
  const torch::Tensor factors = torch::ones({kRows, 1});
  factors[2][0] = std::nan("");
  const torch::Tensor watched = handler.watch(outputs);
  const torch::Tensor loss = (watched * factors).sum();
  handler.update(loss.nan_to_num(1.0), first_samples()).backward();
  EXPECT_EQ(handler.pruner().num_skipped_observations(), 1U);
  EXPECT_EQ(handler.pruner().num_scored(), 0U);
}

TEST(Watch, HandsOutputsOnAsTheyAreWithoutGradients) {
  Handler handler = make_handler({"output-gradient"});
  const torch::NoGradGuard no_grad;
  const torch::Tensor output = torch::ones({kRows, 2});
  EXPECT_TRUE(handler.watch(output).is_same(output));
}

TEST(Watch, ObservesInTheOrderOfALoader) {
  for (const Booking booking : {Booking::by_delivery, Booking::in_order}) {
    Handler handler = make_handler({"output-gradient"}, 32);
    auto data = torch::data::datasets::TensorDataset(torch::arange(1.0, 33.0))
                    .map(torch::data::transforms::Stack<torch::data::TensorExample>());
    const auto options = torch::data::DataLoaderOptions(kRows);
    const auto step = [&](const torch::Tensor& values) {
      torch::Tensor outputs = values.clone().requires_grad_();
      handler.update((0.5 * handler.watch(outputs).square()).sum()).backward();
    };
    if (booking == Booking::by_delivery) {
      auto loader = handler.loader(data, options);
      for (auto& batch : loader) step(batch.data);
    } else {
      auto loader = torch::data::make_data_loader(data, handler.sampler(options), options);
      for (auto& batch : *loader) step(batch.data);
    }
    handler.end_pass();
    EXPECT_EQ(handler.pruner().num_observations(), 4U);
    // dL/dx = x, so that within a batch the scores go as the samples' values.
    const auto scores = handler.pruner().scores();
    const EpochPlan& plan = *handler.pruner().plan();
    for (std::size_t j = 0; j < plan.size(); j += kRows) {
      const auto value = [&](std::size_t k) { return static_cast<double>(plan.sample(j + k)) + 1; };
      const auto score = [&](std::size_t k) {
        return static_cast<double>(scores[static_cast<std::size_t>(plan.sample(j + k))]);
      };
      for (std::size_t k = 1; k < kRows; ++k) {
        EXPECT_NEAR(score(k) / score(0), value(k) / value(0), 1e-5);
      }
    }
  }
}

void expect_refused(const std::function<void()>& call, const std::string& message) {
  try {
    call();
    ADD_FAILURE() << "not refused: " << message;
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr(message));
  }
}

TEST(Watch, RefusesWhatItCannotUse) {
  Handler handler = make_handler({"output-gradient"});
  expect_refused(
      [&] {
        handler.watch(torch::ones({kRows, 2}));
      },
      "needs a gradient, got Float of shape [8, 2] that needs none");
  expect_refused([&] { handler.watch(torch::ones({}).requires_grad_()); }, "a batch dimension");
  expect_refused([&] { handler.watch(torch::Tensor()); }, "got an undefined one");
  expect_refused(
      [&] {
        const auto time_first = handler.watch(torch::ones({5, kRows}).requires_grad_());
        handler.update(time_first.sum(), first_samples());
      },
      "must count the samples of its batch, which are 8, got shape [5, 8]");
  expect_refused(
      [&] {
        const auto output = handler.watch(torch::ones({kRows, 2}).requires_grad_());
        handler.update(output.sum().detach(), first_samples());
      },
      "got one that needs no gradient");
  expect_refused(
      [&] {
        const auto output = handler.watch(torch::ones({kRows, 2}).requires_grad_());
        const auto loss = output.sum();
        loss.backward();
        handler.update(loss, first_samples());
      },
      "backward() has already run through the watched outputs");
  EXPECT_EQ(handler.pruner().num_observations(), 0U);
  Handler exact = make_handler({"output-gradient", {{"cross_entropy", 1.0}}});
  expect_refused(
      [&] {
        exact.watch(torch::ones({kRows, 3, 4}).requires_grad_());
      },
      "must have one row of logits per sample, got shape [8, 3, 4]");
}

TEST(Watch, SaysThatUpdateCameFirst) {
  Handler handler = make_handler({"output-gradient"});
  const auto loss = torch::ones({}).requires_grad_();
  expect_refused([&] { handler.update(loss, first_samples()); },
                 "the score needs watched outputs: call output = handler.watch(output)");
  (void)handler.watch(torch::ones({kRows, 2}).requires_grad_());
  expect_refused([&] { handler.update(loss.detach(), first_samples()); }, "needs no gradient");
  expect_refused([&] { handler.update(loss, first_samples()); },
                 "no output was watched since the last update");
}

TEST(Watch, RefusesTheMeanForAScoreOfPerSampleLosses) {
  Handler handler = make_handler({"sample-loss"});
  const auto output = handler.watch(torch::ones({kRows, 2}).requires_grad_());
  expect_refused([&] { handler.update(output.sum(), first_samples()); },
                 "output-gradient works with these");
}

TEST(Watch, ReportsOutputsThatBackwardDidNotReach) {
  Handler handler = make_handler({"output-gradient"});
  const auto step = [&](bool uses_watched) {
    torch::Tensor output = torch::ones({kRows, 2}).requires_grad_();
    const torch::Tensor watched = handler.watch(output);
    return handler.update((uses_watched ? watched : output).sum(), first_samples());
  };
  step(false).backward();
  expect_refused([&] { step(true); }, "backward() did not reach the outputs");
  step(true).backward();  // goes on after the error was seen
  EXPECT_EQ(handler.pruner().num_observations(), 1U);
  step(false).backward();
  std::vector<std::string> warnings;
  handler.on_warning([&](const std::string& text) { warnings.push_back(text); });
  handler.end_pass();
  ASSERT_FALSE(warnings.empty());
  EXPECT_THAT(warnings.back(), HasSubstr("backward() did not reach the outputs"));
}

TEST(Watch, CountsABatchWithoutABackwardPassAsMissed) {
  Handler handler = make_handler({"output-gradient"});
  handler.on_warning({});
  const auto watched = handler.watch(torch::ones({kRows, 2}).requires_grad_());
  handler.update(watched.sum(), first_samples());
  handler.end_pass();
  EXPECT_EQ(handler.last_pass().num_unsettled, 1U);
  EXPECT_EQ(handler.pruner().num_observations(), 0U);
}

TEST(Watch, OutlivesItsHandler) {
  torch::Tensor loss;
  torch::Tensor output = torch::ones({kRows, 2}).requires_grad_();
  {
    Handler handler = make_handler({"output-gradient"});
    loss = handler.update(handler.watch(output).sum(), first_samples());
  }
  loss.backward();
  EXPECT_TRUE(torch::equal(output.grad(), torch::ones({kRows, 2})));
}

TEST(Watch, IsRecordedWithAnyScore) {
  Handler handler = make_handler({"batch-loss"});
  const tamis::test::ScratchFolder scratch;
  handler.record(scratch / "r");
  torch::Tensor outputs = torch::arange(1.0, kRows + 1.0).requires_grad_();
  handler.update((0.5 * handler.watch(outputs).square()).sum(), first_samples()).backward();
  handler.recorder()->flush();
  std::vector<float> norms;
  Recording(scratch / "r").read([&](const RecordedStep& step) {
    norms.assign(step.norms.begin(), step.norms.end());
  });
  EXPECT_EQ(norms, (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
}

}  // namespace tamis::libtorch::watch_test
