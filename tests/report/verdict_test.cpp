// What the words claim.
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "report.h"

namespace tamis::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string verdict_for(const std::vector<std::vector<double>>& accuracies) {
  const ScratchFolder folder;
  write_comparison(folder / "compare", {.accuracies = accuracies});
  return verdict_of(report_of({folder / "compare"}));
}

TEST(ReportVerdict, SaysWithinNoiseIfTheIntervalIncludesZero) {
  const std::string text = verdict_for({{0.91, 0.92, 0.90}, {0.90, 0.93, 0.89}});
  EXPECT_THAT(text, HasSubstr("bls-infobatch is within noise of full: the 95 % interval of the "
                              "difference includes zero."));
  EXPECT_THAT(text, Not(HasSubstr("worse than full")));
  EXPECT_THAT(text, Not(HasSubstr("better than full")));
}

TEST(ReportVerdict, SaysHowMuchASupportedDifferenceIs) {
  const std::string below = verdict_for({{0.91, 0.92, 0.90}, {0.890, 0.901, 0.881}});
  EXPECT_THAT(below,
              HasSubstr("bls-infobatch is worse than full by 1.93 points (95 % interval 1.79 to "
                        "2.08)."));
  EXPECT_THAT(below, HasSubstr("No method saved training time without being worse."));
  const std::string above = verdict_for({{0.91, 0.92, 0.90}, {0.930, 0.939, 0.919}});
  EXPECT_THAT(above, HasSubstr("bls-infobatch is better than full by 1.93 points"));
}

TEST(ReportVerdict, SaysWhatTheIntervalStillAllows) {
  // -0.01, +0.01, -0.01: mean -0.333 points, half width 2.868.
  const std::string text = verdict_for({{0.91, 0.92, 0.90}, {0.90, 0.93, 0.89}});
  EXPECT_THAT(text, HasSubstr("the interval still allows it to be worse by 3.20 points"));
  EXPECT_THAT(text, HasSubstr("bls-infobatch took less training time: 24.0 % less than full"));
}

TEST(ReportVerdict, SaysWhetherChoosingSamplesWasWorthAnything) {
  const auto verdict_with = [](double accuracy) {
    const ScratchFolder folder;
    write_comparison(folder / "compare",
                     {.methods = {"full", "random-dynamic", "seta"},
                      .accuracies = {{0.91, 0.92, 0.90},
                                     {0.90, 0.91, 0.89},
                                     {accuracy, accuracy + 0.011, accuracy - 0.01}}});
    return verdict_of(report_of({folder / "compare"}));
  };
  EXPECT_THAT(verdict_with(0.88), HasSubstr("seta is not shown to beat random-dynamic (-1.97 "
                                            "points, 95 % interval -2.11 to -1.82), which trained "
                                            "on no more samples."));
  EXPECT_THAT(verdict_with(0.93),
              HasSubstr("seta beats random-dynamic, which trained on no more samples."));
}

TEST(ReportVerdict, GivesTheSettingAndTheCostOfPruning) {
  const std::string text = verdict_for({{0.91, 0.92, 0.90}, {0.90, 0.93, 0.89}});
  EXPECT_THAT(text, HasSubstr("On made-up-clothes with small-cnn, 4 epochs and 3 seeds, full "
                              "reached a test accuracy of 91.00 %."));
  EXPECT_THAT(text, HasSubstr("Pruning itself took at most 0.13 % of the training time."));
}

TEST(ReportVerdict, ClaimsNothingFromFewerThanThreeSeeds) {
  const std::vector<FixtureComparison> comparisons = {
      {.seeds = {5}, .accuracies = {{0.9}, {0.5}}},
      {.seeds = {5, 6}, .accuracies = {{0.9, 0.9}, {0.5, 0.5}}}};
  for (const FixtureComparison& comparison : comparisons) {
    const ScratchFolder folder;
    write_comparison(folder / "compare", comparison);
    const std::string text = verdict_of(report_of({folder / "compare"}));
    EXPECT_THAT(text, HasSubstr("With fewer than three seeds a difference to full cannot be told "
                                "from noise: bls-infobatch −40.00 points."));
    EXPECT_THAT(text, AllOf(Not(HasSubstr("worse")), Not(HasSubstr("within noise"))));
  }
}

TEST(ReportVerdict, SaysIfMoreTimeWasSavedThanPruningCan) {
  const ScratchFolder folder;
  write_run(folder / "full", {.accuracy = 0.9, .train_seconds = 100.0});
  write_run(folder / "seta", {.method = "seta", .prune_ratio = 0.3, .train_seconds = 10.0});
  const nlohmann::json comparison = report_of({folder / "full", folder / "seta"});
  EXPECT_THAT(cautions_of(comparison), HasSubstr("seta saved more time than pruning can"));
  EXPECT_EQ(row_of(comparison, "seta")["more_saved_than_pruned"], true);
  EXPECT_THAT(verdict_of(comparison),
              AllOf(HasSubstr("seta took less training time: 90.0 % less than full"),
                    HasSubstr("Pruning cannot save more than it prunes: something else slowed full "
                              "down.")));
}

// A detector that trains with a distance to the truth: lower is better, and it has a unit.
TEST(ReportVerdict, FollowsTheDirectionAndTheUnitOfTheHeadline) {
  const ScratchFolder folder;
  write_comparison(folder / "compare", {.accuracies = {{0.5, 0.52, 0.51}, {0.4, 0.42, 0.412}}});
  for (const auto& entry : std::filesystem::directory_iterator(folder / "compare")) {
    if (!entry.is_directory()) continue;
    nlohmann::json config = nlohmann::json::parse(std::ifstream(entry.path() / "config.json"));
    config["metrics"][0].update({{"unit", "mm"}, {"direction", "lower"}});
    std::ofstream(entry.path() / "config.json") << config.dump();
  }
  const std::string text = verdict_of(report_of({folder / "compare"}));
  EXPECT_THAT(text, HasSubstr("full reached a test accuracy of 0.5100 mm."));
  EXPECT_THAT(text, HasSubstr("bls-infobatch is better than full by 0.0993 mm (95 % interval"));
}

TEST(ReportVerdict, JudgesNothingWithoutABaseline) {
  const ScratchFolder folder;
  write_run(folder / "a", {.method = "infobatch", .accuracy = 0.91});
  write_run(folder / "b", {.method = "seta", .accuracy = 0.92});
  const nlohmann::json comparison = report_of({folder / "a", folder / "b"});
  EXPECT_TRUE(comparison["baseline"].is_null());
  EXPECT_THAT(verdict_of(comparison), AllOf(HasSubstr("no run on the full data to compare with"),
                                            HasSubstr("infobatch 91.00 % and seta 92.00 %")));
}

TEST(ReportVerdict, WaitsForAFinishedRun) {
  const ScratchFolder folder;
  write_run(folder / "a", {.missing_epochs = 4});
  EXPECT_THAT(verdict_of(report_of({folder / "a"})), HasSubstr("No run has finished yet"));
  write_run(folder / "b", {.method = "seta"});
  EXPECT_THAT(verdict_of(report_of({folder / "a", folder / "b"})),
              HasSubstr("full has not finished, so no difference is judged yet."));
}

// Random accuracies; the interval is computed here again, from the textbook.
TEST(ReportVerdict, CallsADifferenceExactlyWhatItsIntervalSupports) {
  constexpr double kT = 4.302652729911275;  // Student, 97.5 %, 2 degrees of freedom
  std::mt19937_64 random(20240301);
  std::normal_distribution<double> noise(0.0, 0.004);
  int num_supported = 0;
  for (int round = 0; round < 40; ++round) {
    const double effect = 0.006 * (round % 5 - 2);
    std::vector<double> full(3);
    std::vector<double> treated(3);
    std::vector<double> differences(3);
    double mean = 0.0;
    for (std::size_t s = 0; s < 3; ++s) {
      full[s] = 0.8 + noise(random);
      treated[s] = full[s] + effect + 0.5 * noise(random);
      differences[s] = treated[s] - full[s];
      mean += differences[s] / 3.0;
    }
    double squares = 0.0;
    for (const double difference : differences)
      squares += (difference - mean) * (difference - mean);
    const double half = kT * std::sqrt(squares / 2.0) / std::sqrt(3.0);
    const bool is_supported = std::abs(mean) > half;
    num_supported += is_supported ? 1 : 0;
    const std::string text = verdict_for({full, treated});
    EXPECT_EQ(text.find("within noise of full") == std::string::npos, is_supported) << text;
    EXPECT_EQ(text.find("is worse than full") != std::string::npos, is_supported && mean < 0.0)
        << text;
    EXPECT_EQ(text.find("is better than full") != std::string::npos, is_supported && mean > 0.0)
        << text;
  }
  EXPECT_GT(num_supported, 5);
  EXPECT_LT(num_supported, 35);
}

TEST(ReportVerdict, NamesTheBestOfThoseNotShownToBeWorse) {
  const ScratchFolder folder;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const double wobble = 0.001 * static_cast<double>(seed);
    const std::string end = std::to_string(seed);
    write_run(folder / ("full" + end), {.seed = seed, .accuracy = 0.9 + wobble});
    write_run(
        folder / ("fast" + end),
        {.method = "random-dynamic", .seed = seed, .accuracy = 0.8 + wobble, .train_seconds = 2.0});
    write_run(folder / ("good" + end),
              {.method = "seta", .seed = seed, .accuracy = 0.902 - wobble, .train_seconds = 7.0});
    write_run(
        folder / ("slow" + end),
        {.method = "infobatch", .seed = seed, .accuracy = 0.902 - wobble, .train_seconds = 9.0});
  }
  std::vector<std::filesystem::path> folders;
  for (const std::string& name : folder.names()) folders.push_back(folder / name);
  const std::string text = verdict_of(report_of(folders));
  EXPECT_THAT(text, HasSubstr("Of the methods not shown to be worse, seta saved the most training "
                              "time: 30.0 % less than full"));
  EXPECT_THAT(text, HasSubstr("random-dynamic is worse than full by 10.00 points"));
}

}  // namespace
}  // namespace tamis::test
