// `tamis analyze` and `tamis replay` on recordings of simulated training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "support/program.h"
#include "support/simulated_run.h"
#include "tamis/recorder.h"
#include "tamis/registry.h"

namespace tamis::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::size_t kSamples = 640;
constexpr std::size_t kBatch = 16;

Pruner make_pruner(double alpha = 0.7) {
  return Pruner({.num_samples = kSamples,
                 .num_epochs = 40,
                 .policy = {.name = "none"},
                 .score = Spec{"batch-loss", {{"alpha", alpha}}},
                 .seed = 4});
}

// Given scores do not follow from a recording.
std::size_t num_replayed_scores() {
  const auto all = registered_scorers();
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [](const ScorerInfo& info) { return !info.is_given; }));
}

class Analyze : public ::testing::Test {
 protected:
  void record(std::uint64_t num_epochs, std::size_t num_recorded = 200, double alpha = 0.7,
              bool is_watched = false) {
    Pruner pruner = make_pruner(alpha);
    pruner.record(folder_ / "run/record", {.num_recorded = num_recorded, .seed = 9});
    simulate_with_losses(pruner, num_epochs, kBatch, is_watched);
    pruner.save(folder_ / "run/pruner.safetensors");
    scores_ = pruner.scores();
    samples_.assign(pruner.recorder()->samples().begin(), pruner.recorder()->samples().end());
  }
  json analyze(const Arguments& more = {}) const {
    Arguments arguments = {"analyze", folder_.at("run"), "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_json(arguments);
  }
  json score_of(const json& analysis, const std::string& name) const {
    for (const json& score : analysis["fidelity"]["scores"]) {
      if (score["name"] == name) return score;
    }
    return {};
  }

  TextFolder folder_;
  std::vector<float> scores_;
  std::vector<std::uint32_t> samples_;
};

TEST_F(Analyze, TakesApartTheScoresThatTheRunSaved) {
  record(40, 200, 0.8);
  const json analysis = analyze();
  EXPECT_EQ(analysis["score"]["options"]["alpha"], 0.8);
  EXPECT_EQ(analysis["decomposition"]["scores"], "saved by the run");
  EXPECT_EQ(analysis["decomposition"]["num_samples"], 200);
  EXPECT_LT(analysis["decomposition"]["largest_error"].get<double>(), 1e-5);
  // With another alpha they are not what the run saved, and add up all the same.
  const json other = analyze({"--alpha", "0.3"});
  EXPECT_EQ(other["decomposition"]["scores"], "replayed");
  EXPECT_LT(other["decomposition"]["largest_error"].get<double>(), 1e-5);
}

TEST_F(Analyze, CountsWhatWasRecorded) {
  record(40);
  const json recording = analyze()["recording"];
  EXPECT_EQ(recording["num_samples"], kSamples);
  EXPECT_EQ(recording["num_recorded"], 200);
  EXPECT_EQ(recording["num_steps"], 40 * kSamples / kBatch);
  EXPECT_EQ(recording["num_skipped"], 40 * (kSamples / kBatch / 13));
  EXPECT_EQ(recording["num_epochs"], 40);
  EXPECT_EQ(recording["batch_size"], kBatch);
}

TEST_F(Analyze, FindsTheNoiseAboveTheSignalOfSimulatedLosses) {
  record(40);
  const json spectra = analyze()["spectra"];
  EXPECT_EQ(spectra["segment_length"], 16);
  EXPECT_EQ(spectra["num_frequencies"], 8);
  EXPECT_EQ(spectra["num_noise_above"], 8);
  EXPECT_EQ(spectra["frequencies"].back(), 0.5);
  // Everybody's loss falls with the epochs, which is slow; the companions change at every visit.
  EXPECT_GT(spectra["signal_energy"]["share_below"], spectra["noise_energy"]["share_below"]);
}

TEST_F(Analyze, SeesThatOwnLossesKnowMoreThanBatchLosses) {
  record(40);
  const json analysis = analyze();
  EXPECT_EQ(analysis["fidelity"]["truth"], "last visit");
  EXPECT_EQ(analysis["fidelity"]["epochs"].size(), 10U);
  EXPECT_EQ(analysis["fidelity"]["epochs"].back(), 39);
  const json own = score_of(analysis, "sample-loss");
  EXPECT_EQ(own["sees"], "per-sample losses");
  EXPECT_NEAR(own["spearman"].back().get<double>(), 1.0, 1e-12);
  const json batch = score_of(analysis, "batch-loss");
  EXPECT_EQ(batch["sees"], "batch losses");
  EXPECT_GT(batch["spearman"].back(), 0.05);
  EXPECT_LT(batch["spearman"].back(), 0.8);
  EXPECT_EQ(analysis["fidelity"]["scores"].size(), num_replayed_scores() - 1);
  EXPECT_TRUE(score_of(analysis, "output-gradient").is_null()) << "no norms were recorded";
}

TEST_F(Analyze, ShowsOutputGradientsWhereTheyWereRecorded) {
  record(10, 200, 0.7, true);
  const json analysis = analyze();
  EXPECT_EQ(analysis["fidelity"]["scores"].size(), num_replayed_scores());
  const json score = score_of(analysis, "output-gradient");
  EXPECT_EQ(score["sees"], "output gradients");
  EXPECT_GT(score["spearman"].back(), 0.9);
  EXPECT_THAT(run({"analyze", folder_.at("run")}).out,
              AllOf(HasSubstr("output-gradient"), HasSubstr("output gradients")));
}

TEST_F(Analyze, ReplaysOutputGradientsWithAnyPower) {
  record(3, 200, 0.7, true);
  // The norms are the square roots of the losses, so that power 2 gives back every loss.
  const json replayed = run_json(
      {"replay", folder_.at("run"), "--score", "output-gradient", "--power", "2", "--json"});
  const json own = run_json({"replay", folder_.at("run"), "--score", "sample-loss", "--json"});
  EXPECT_EQ(replayed["num_scored"], kSamples);
  EXPECT_FALSE(replayed.contains("num_without_norms"));
  std::size_t num_compared = 0;
  std::size_t num_equal = 0;
  for (std::size_t i = 0; i < kSamples; ++i) {
    if (own["scores"][i].is_null()) continue;
    const auto loss = own["scores"][i].get<double>();
    const double difference = std::abs(replayed["scores"][i].get<double>() - loss);
    num_equal += difference <= 1e-5 * loss ? 1 : 0;
    ++num_compared;
  }
  EXPECT_GT(num_compared, 150U);
  // Three of 40 batches of an epoch have a loss that is not a number, and are skipped as a whole.
  EXPECT_GT(num_equal, num_compared * 34 / 40);
}

TEST_F(Analyze, TakesNormsOfOrderOneForThoseOfACrossEntropy) {
  const OptionMap exact{{"cross_entropy", 1.0}};
  Pruner pruner({.num_samples = 4,
                 .num_epochs = 1,
                 .policy = {"none"},
                 .score = Spec{"output-gradient", exact}});
  pruner.record(folder_ / "run/record");
  pruner.start_epoch(0);
  const std::vector<float> losses = {0.1F, 0.4F, 1.0F, 3.0F};
  std::vector<float> norms;
  for (const float loss : losses) norms.push_back(1.0F - std::exp(-loss));
  const std::vector<SampleIndex> ids = {0, 1, 2, 3};
  pruner.observe(ids, losses, norms);
  pruner.recorder()->flush();
  Arguments replay = {"replay", folder_.at("run"), "--score", "output-gradient", "--json"};
  EXPECT_THAT(run(replay).err, HasSubstr("recorded with norms of order 1, and the score takes "
                                         "those of order 2; give cross_entropy=1"));
  replay.insert(replay.end(), {"--cross-entropy", "1"});
  const json scores = run_json(replay)["scores"];
  for (std::size_t k = 0; k < losses.size(); ++k) {
    EXPECT_NEAR(scores[k].get<float>(), losses[k], 1e-5F);
  }
  EXPECT_EQ(score_of(analyze(), "output-gradient")["options"]["cross_entropy"], 1.0);
}

TEST_F(Analyze, SaysWhatIsMissingToReplayOutputGradients) {
  record(3);
  const Outcome outcome = run({"replay", folder_.at("run"), "--score", "output-gradient"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err,
              HasSubstr("score output-gradient needs the norms of the output gradients, and this "
                        "recording has none; record a run whose outputs are watched"));
}

TEST_F(Analyze, ComparesWithMeasuredLossesWhereThereAreSome) {
  Pruner pruner = make_pruner();
  pruner.record(folder_ / "run/record", {.num_recorded = 50});
  simulate_with_losses(pruner, 3, kBatch);
  // As if the batch loss score were right about every sample.
  std::vector<float> truth;
  const std::vector<float> scores = pruner.scores();
  for (const std::uint32_t sample : pruner.recorder()->samples()) truth.push_back(scores[sample]);
  pruner.recorder()->record_true_losses(2, truth);
  pruner.recorder()->flush();
  const json analysis = analyze();
  EXPECT_EQ(analysis["fidelity"]["truth"], "measured");
  EXPECT_EQ(analysis["fidelity"]["epochs"], json::parse("[2]"));
  const json score = score_of(analysis, "batch-loss");
  EXPECT_NEAR(score["spearman"][0].get<double>(), 1.0, 1e-12);
  EXPECT_NEAR(score["pearson"][0].get<double>(), 1.0, 1e-12);
  EXPECT_EQ(score["top_overlap"][0], 1.0);
  EXPECT_EQ(analysis["fidelity"]["alphas"][7]["options"]["alpha"], 0.7);
  EXPECT_NEAR(analysis["fidelity"]["alphas"][7]["spearman"][0].get<double>(), 1.0, 1e-12);
  EXPECT_LT(analysis["fidelity"]["alphas"][0]["spearman"][0].get<double>(), 0.9999);
  EXPECT_THAT(analysis["why_no_signal"].get<std::string>(), HasSubstr("visited 8 times"));
  EXPECT_TRUE(analysis["spectra"].is_null());
}

TEST_F(Analyze, FollowsTheSampleThatIsAskedFor) {
  record(12);
  const std::string sample = std::to_string(samples_[3]);
  const json series = analyze({"--sample", sample})["series"];
  EXPECT_EQ(series["sample"], samples_[3]);
  ASSERT_GE(series["sample_loss"].size(), 8U);
  EXPECT_EQ(series["sample_loss"][0].get<float>(), simulated_loss(samples_[3], 0));
  EXPECT_NEAR(series["signal"][0].get<double>(), series["sample_loss"][0].get<double>() / kBatch,
              1e-12);
  EXPECT_NEAR(series["score"].back().get<double>(), static_cast<double>(scores_[samples_[3]]),
              1e-5);
  EXPECT_THAT(run_refused(2, {"analyze", folder_.at("run"), "--sample", "100000"}),
              HasSubstr("sample must be a recorded one (200 of them"));
}

TEST_F(Analyze, WritesItsResultsIntoTheRun) {
  record(12);
  const Outcome outcome = run({"analyze", folder_.at("run")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("200 of 640 samples, 480 steps, 12 epochs"),
                                 HasSubstr("reconstruction"), HasSubstr("Largest: alpha")));
  EXPECT_EQ(json::parse(folder_.read("run/analysis.json")), analyze());
  run_json({"analyze", folder_.at("run"), "--json", "--out", folder_.at("other.json")});
  EXPECT_EQ(json::parse(folder_.read("other.json"))["format"], "tamis-analysis");
}

TEST_F(Analyze, NeedsARecordingWithSomethingInIt) {
  std::filesystem::create_directories(folder_ / "run");
  EXPECT_THAT(run_refused(1, {"analyze", folder_.at("run")}),
              HasSubstr("holds no recording; tamis train --record makes one"));
  Recorder::create(folder_ / "run/record", {.num_samples = 5});
  EXPECT_THAT(run_refused(1, {"analyze", folder_.at("run")}), HasSubstr("no step with a finite"));
}

TEST_F(Analyze, SaysWhyARecordingOfMeansAloneIsNotEnough) {
  {
    auto recorder = Recorder::create(folder_ / "run", {.num_samples = 5});
    recorder.record(0, std::vector<std::uint32_t>{1, 2}, 0.5);
  }
  EXPECT_THAT(run_refused(1, {"analyze", folder_.at("run")}),
              AllOf(HasSubstr("the per-sample losses are not in the recording"),
                    HasSubstr("no true losses")));
}

TEST_F(Analyze, RefusesAnAlphaThatFreezesTheScores) {
  record(12);
  EXPECT_THAT(run_refused(2, {"analyze", folder_.at("run"), "--alpha", "1"}), HasSubstr("alpha"));
}

TEST_F(Analyze, ReplayOfTheRunGivesItsScores) {
  record(5, 30);
  const json own = run_json({"replay", folder_.at("run"), "--score", "sample-loss", "--json"});
  EXPECT_EQ(own["num_scored"], 30);
  const json all = run_json({"replay", folder_.at("run"), "--score", "batch-loss", "--json"});
  EXPECT_EQ(all["num_scored"], kSamples);
  EXPECT_EQ(all["num_skipped_observations"], 5 * (kSamples / kBatch / 13));
  for (std::size_t i = 0; i < kSamples; ++i) {
    ASSERT_NEAR(all["scores"][i].get<double>(), static_cast<double>(scores_[i]), 1e-6) << i;
  }
  EXPECT_THAT(run_refused(1, {"replay", folder_.at("."), "--score", "batch-loss"}),
              HasSubstr("holds no recording"));
}

}  // namespace
}  // namespace tamis::test
