#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "paths.h"
#include "support/process_team.h"
#include "support/ranks.h"
#include "support/scratch_folder.h"
#include "support/simulated_run.h"

namespace tamis {
namespace {

using std::chrono::milliseconds;
using test::ProcessTeam;
using test::ScratchFolder;
using testing::HasSubstr;

struct EpochLine {
  std::size_t size = 0;
  std::uint64_t num_selected = 0;
  std::uint64_t bytes = 0;
  std::vector<SampleIndex> samples;
};

struct RankReport {
  std::map<std::uint64_t, EpochLine> epochs;
  std::string error;
  double seconds_to_error = 0.0;  // from the last step
  bool finished = false;
};

RankReport read_report(const ScratchFolder& folder, std::size_t rank) {
  RankReport report;
  std::ifstream file(folder / ("rank" + std::to_string(rank)));
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind == "finished") report.finished = true;
    if (kind == "error") {
      words >> report.seconds_to_error;
      std::getline(words, report.error);
    }
    if (kind != "epoch") continue;
    std::uint64_t epoch = 0;
    words >> epoch;
    EpochLine& entry = report.epochs[epoch];
    words >> entry.size >> entry.num_selected >> entry.bytes;
    for (SampleIndex sample = 0; words >> sample;) entry.samples.push_back(sample);
  }
  return report;
}

std::vector<std::string> command(const ScratchFolder& folder, std::vector<std::string> settings) {
  settings.insert(settings.begin(), {TAMIS_RANK_PROCESS, folder.path().string()});
  return settings;
}

// Runs to the end, which must be reached.
std::vector<RankReport> run(std::size_t size, const ScratchFolder& folder,
                            const std::vector<std::string>& settings) {
  ProcessTeam team(size, command(folder, settings));
  std::vector<RankReport> reports;
  for (std::size_t r = 0; r < size; ++r) {
    EXPECT_EQ(team.wait(r, milliseconds(60'000)), 0) << read_report(folder, r).error;
    reports.push_back(read_report(folder, r));
    EXPECT_TRUE(reports.back().finished);
  }
  return reports;
}

std::multiset<SampleIndex> all_samples(const std::vector<RankReport>& reports,
                                       std::uint64_t epoch) {
  std::multiset<SampleIndex> samples;
  for (const RankReport& report : reports) {
    const auto& own = report.epochs.at(epoch).samples;
    samples.insert(own.begin(), own.end());
  }
  return samples;
}

class Processes : public testing::TestWithParam<std::string> {};

TEST_P(Processes, ShareEveryEpochEqually) {
  for (const std::size_t size : {1U, 2U, 3U, 4U}) {
    const ScratchFolder folder;
    const auto reports = run(size, folder, {"layout=" + GetParam(), "epochs=3"});
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      const auto samples = all_samples(reports, epoch);
      const EpochLine& first = reports[0].epochs.at(epoch);
      EXPECT_EQ(samples.size(), first.num_selected);
      EXPECT_EQ(std::set<SampleIndex>(samples.begin(), samples.end()).size(), samples.size());
      for (const RankReport& report : reports) {
        EXPECT_EQ(report.epochs.at(epoch).size, first.size);
      }
    }
    EXPECT_LT(reports[0].epochs.at(2).num_selected, 3001U) << "pruned";
  }
}

TEST_P(Processes, DoWhatThreadsDo) {
  const ScratchFolder folder;
  const auto reports = run(3, folder, {"layout=" + GetParam(), "epochs=4"});
  test::run_ranks(3, [&](const auto& communicator) {
    Pruner pruner({.num_samples = 3001,
                   .num_epochs = 8,
                   .policy = {"infobatch"},
                   .score = Spec{"batch-loss"},
                   .seed = 1,
                   .layout = parse_layout(GetParam())},
                  communicator);
    for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
      const EpochPlan& plan = pruner.start_epoch(epoch);
      EXPECT_EQ(test::own_samples(plan), reports[communicator->rank()].epochs.at(epoch).samples);
      test::simulate_epoch(pruner, 32);
    }
  });
}

TEST_P(Processes, ExchangeLittle) {
  const ScratchFolder folder;
  for (const std::string policy : {"infobatch", "seta"}) {
    const auto reports = run(4, folder, {"layout=" + GetParam(), "epochs=3", "policy=" + policy});
    for (const RankReport& report : reports) {
      const std::uint64_t num_batches = 4 * (report.epochs.at(1).size / 32 + 1);
      // Replicated: 4 bytes per batch, and what every rank says once per epoch.
      const std::uint64_t most = GetParam() == "sharded" ? (policy == "seta" ? 1U << 20U : 4096U)
                                                         : 4 * num_batches + 4 * 100;
      EXPECT_LE(report.epochs.at(2).bytes, most) << policy;
      EXPECT_GT(report.epochs.at(2).bytes, 0U);
    }
  }
}

TEST_P(Processes, RefuseOtherSettingsOnEveryRank) {
  const ScratchFolder folder;
  ProcessTeam team(3, command(folder, {"layout=" + GetParam(), "odd=2"}));
  for (std::size_t r = 0; r < 3; ++r) {
    EXPECT_EQ(team.wait(r, milliseconds(30'000)), 1);
    EXPECT_THAT(read_report(folder, r).error, HasSubstr("rank 2 has seed 2 and rank 0 has seed 1"));
  }
}

// Whether a write to a rank that died raises the signal is a matter of timing.
TEST_P(Processes, SurviveABrokenPipe) {
  const ScratchFolder folder;
  EXPECT_EQ(run(2, folder, {"layout=" + GetParam(), "epochs=1", "pipe=broken"}).size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Processes, testing::Values("replicated", "sharded"),
                         [](const auto& it) { return it.param; });

struct Fault {
  std::string layout;
  std::string fault;
  std::string when;
  std::size_t victim;
  friend void PrintTo(const Fault& it, std::ostream* out) {
    *out << it.layout << ' ' << it.fault << " of rank " << it.victim << " at " << it.when;
  }
};

// What would have happened.
const std::vector<RankReport>& undisturbed_run(const std::string& layout) {
  static std::map<std::string, std::vector<RankReport>> runs;
  if (!runs.contains(layout)) {
    const ScratchFolder folder;
    runs[layout] = run(3, folder, {"layout=" + layout, "epochs=4"});
  }
  return runs[layout];
}

class Faults : public testing::TestWithParam<Fault> {};

TEST_P(Faults, EveryOtherRankNamesTheVictimInTimeAndARestartLosesNothing) {
  constexpr milliseconds kLimit(6000);
  const Fault& fault = GetParam();
  const ScratchFolder folder;
  const std::string state = (folder / "state").string();
  const std::string layout = "layout=" + fault.layout;
  const std::vector<RankReport>& expected = undisturbed_run(fault.layout);

  {
    ProcessTeam team(
        3, command(folder, {layout, "epochs=4", "save=" + state,
                            "limit=" + std::to_string(kLimit.count()), "fault=" + fault.fault,
                            "when=" + fault.when, "victim=" + std::to_string(fault.victim)}));
    if (fault.fault == "kill") {
      EXPECT_EQ(team.wait(fault.victim, milliseconds(60'000)), -SIGKILL);
    }
    for (std::size_t r = 0; r < 3; ++r) {
      if (r == fault.victim) continue;
      EXPECT_EQ(team.wait(r, milliseconds(60'000)), 1);
      const RankReport report = read_report(folder, r);
      EXPECT_THAT(report.error, HasSubstr("rank " + std::to_string(fault.victim) + " "))
          << "on rank " << r;
      // Measured by the rank itself, so that it does not count how long a busy machine takes to
      // load the program.
      EXPECT_LT(report.seconds_to_error, std::chrono::duration<double>(kLimit).count() + 2.0);
    }
  }
  if (fault.when == "start") return;
  for (const std::size_t size : {3U, 2U}) {
    const ScratchFolder other;
    const auto reports = run(size, other, {layout, "epochs=4", "load=" + state});
    const std::uint64_t epoch = reports[0].epochs.begin()->first;
    EXPECT_GE(epoch, 2U) << "epochs 0 and 1 were saved";
    EXPECT_EQ(all_samples(reports, epoch), all_samples(expected, epoch)) << "with " << size;
  }
}

std::vector<Fault> faults() {
  return {
      {"replicated", "kill", "start", 1},      {"replicated", "kill", "step", 1},
      {"replicated", "kill", "exchange", 1},   {"replicated", "kill", "checkpoint", 1},
      {"replicated", "kill", "checkpoint", 0}, {"replicated", "hang", "step", 0},
      {"replicated", "hang", "exchange", 2},   {"sharded", "kill", "step", 0},
      {"sharded", "kill", "exchange", 1},      {"sharded", "kill", "checkpoint", 1},
  };
}

INSTANTIATE_TEST_SUITE_P(Each, Faults, testing::ValuesIn(faults()), [](const auto& it) {
  return it.param.layout + "_" + it.param.fault + "_" + it.param.when + "_" +
         std::to_string(it.param.victim);
});

}  // namespace
}  // namespace tamis
