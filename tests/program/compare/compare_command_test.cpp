// `tamis compare --command`: another program trains, tamis keeps the books.
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>

#include "support/program.h"

namespace tamis::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Writes a finished run of two epochs whose distance depends on method and seed. It obeys the shell
// code in the file "before", if there is one.
constexpr const char* kTrainer = R"(
while [ $# -gt 0 ]; do
  case $1 in --method) method=$2 ;; --seed) seed=$2 ;; --out) out=$2 ;; *) exit 2 ;; esac
  shift 2
done
here=$(dirname "$0")
echo "$method $seed" >> "$here/calls"
echo "training $method"
[ -e "$here/before" ] && . "$here/before"
mkdir -p "$out"
value=2$seed.5
[ "$method" = full ] && value=1$seed.5
cat > "$out/config.json" <<END
{"format": "tamis-run", "format_version": 2, "method": {"name": "${name:-$method}"},
 "seed": $seed, "epochs": 2, "data": {"name": "faces", "num_train": 100},
 "metrics": [{"name": "frechet_distance", "direction": "lower", "headline": true}]}
END
line='"samples": 80, "pruned": 20, "train_seconds": 1'
echo '{"epoch": 0, '$line', "values": {}}' > "$out/metrics.jsonl"
[ "$epochs" = 1 ] && exit 0
echo '{"epoch": 1, '$line', "values": {"frechet_distance": '$value'}}' >> "$out/metrics.jsonl"
)";

class CompareCommand : public ::testing::Test {
 protected:
  CompareCommand() { folder_.write("train.sh", kTrainer); }

  Arguments arguments(const Arguments& more = {}) const {
    Arguments all = {"compare", "--command", "exec sh " + folder_.at("train.sh"), "--out",
                     folder_.at("c")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Outcome compare(const Arguments& more = {"--methods", "full", "seta:groups=3"}) const {
    return run(arguments(more));
  }
  void before(const std::string& code) const { folder_.write("before", code); }
  std::vector<std::string> calls() const {
    std::vector<std::string> lines;
    std::ifstream file(folder_ / "calls");
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  TextFolder folder_;
};

TEST_F(CompareCommand, MakesEveryRunAndEndsWithTheTable) {
  const Outcome outcome = compare();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(calls(), ElementsAre("full 0", "seta:groups=3 0", "seta:groups=3 1", "full 1",
                                   "full 2", "seta:groups=3 2"));
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("[1/6] full seed 0  frechet distance 10.50  pruned 20.0 %  2 s"),
                    HasSubstr("difference to full"), HasSubstr("+10.00 [+9.93, +10.07]"),
                    HasSubstr("worse"), HasSubstr("lower is better")));
  const json summary = json::parse(folder_.read("c/summary.json"));
  EXPECT_EQ(summary["metric"]["name"], "frechet_distance");
  EXPECT_EQ(summary["rows"][1]["difference"]["supported"], true);
  EXPECT_THAT(folder_.read("c/full-seed0.out"), HasSubstr("training full"));
}

TEST_F(CompareCommand, KeepsRunsThatAreDone) {
  ASSERT_EQ(compare({"--methods", "full", "--seeds", "0"}).code, 0);
  const Outcome outcome = compare({"--methods", "full", "ucb", "--seeds", "0"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(calls(), ElementsAre("full 0", "ucb 0"));
  EXPECT_THAT(outcome.out, HasSubstr("(was done)"));
  const json summary = run_json({"compare", "--resume", folder_.at("c"), "--json"});
  EXPECT_EQ(summary["rows"].size(), 2U);
  EXPECT_EQ(calls().size(), 2U);
}

TEST_F(CompareCommand, PassesAFailureThrough) {
  before("[ $method = ucb ] && { echo line 1 >&2; echo no such data >&2; exit 3; }");
  const Outcome outcome = compare({"--methods", "full", "ucb", "--seeds", "0"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("line 1\nno such data\n"),
                                 HasSubstr("tamis: ucb seed 0: the program ended with exit code 3"),
                                 HasSubstr("ucb-seed0.err")));
  before("");
  EXPECT_EQ(compare({"--methods", "full", "ucb", "--seeds", "0"}).code, 0);
  EXPECT_THAT(calls(), ElementsAre("full 0", "ucb 0", "ucb 0"));
}

TEST_F(CompareCommand, StartsAnInterruptedRunAgainInItsFolder) {
  before("epochs=1; [ -e $out/metrics.jsonl ] && epochs=2 && touch $here/continued");
  const Outcome outcome = compare({"--methods", "full", "--seeds", "0"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("the program ended well after 1 of 2 epochs"));
  EXPECT_EQ(compare({"--methods", "full", "--seeds", "0"}).code, 0);
  EXPECT_TRUE(fs::exists(folder_ / "continued"));
}

TEST_F(CompareCommand, PassesASignalOnAndSaysHowToContinue) {
  before("trap 'touch $here/saved; exit 0' TERM; kill -TERM $PPID; while :; do sleep 0.1; done");
  const Outcome outcome = compare({"--methods", "full", "--seeds", "0"});
  EXPECT_EQ(outcome.code, 128 + SIGTERM);
  EXPECT_THAT(outcome.err, HasSubstr("continue with: tamis compare --resume " + folder_.at("c")));
  EXPECT_TRUE(fs::exists(folder_ / "saved"));
  before("");
  EXPECT_EQ(run({"compare", "--resume", folder_.at("c")}).code, 0);
}

TEST_F(CompareCommand, GoesOnAfterAHangUpThatItWasStartedToIgnore) {
  before("kill -HUP $PPID");
  const Outcome outcome = run(arguments({"--methods", "full", "ucb"}), {.ignored_signal = SIGHUP});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(calls().size(), 6U);
}

TEST_F(CompareCommand, SaysHowAProgramBreaksTheContract) {
  const auto refused = [&](const char* code, const char* message) {
    before(code);
    const Outcome outcome = compare({"--methods", "full", "--seeds", "0"});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, HasSubstr(message));
  };
  refused("exit 0", "the program ended well but wrote no run into");
  refused("name=other", "config.json: method: name must be full, got \"other\"");
}

TEST_F(CompareCommand, RefusesAnotherCommandInTheSameFolder) {
  ASSERT_EQ(compare({"--methods", "full", "--seeds", "0"}).code, 0);
  Arguments other = arguments({"--methods", "full"});
  other[2] = "python train.py";
  EXPECT_THAT(run(other).err,
              AllOf(HasSubstr("other settings"), HasSubstr("now \"python train.py\"")));
}

TEST_F(CompareCommand, SaysWhatIsWrongWithTheCommandLine) {
  EXPECT_THAT(run_refused(2, arguments()), HasSubstr("--command needs --methods"));
  EXPECT_THAT(run_refused(2, arguments({"--methods", "a/b"})), HasSubstr("without a /"));
  EXPECT_THAT(run_refused(2, arguments({"--methods", "full", "--baseline", "ucb"})),
              HasSubstr("baseline must be one of the methods"));
  EXPECT_THAT(run_refused(2, arguments({"--resume", folder_.at("c")})),
              HasSubstr("--resume takes all settings"));
  EXPECT_FALSE(fs::exists(folder_ / "c"));
}

#ifndef TAMIS_LIBTORCH
TEST_F(CompareCommand, CannotContinueAComparisonOfTheTrainer) {
  fs::create_directory(folder_ / "c");
  folder_.write("c/compare.json", R"({"format": "tamis-compare", "format_version": 1,
      "methods": ["full"], "seeds": [0], "baseline": "full", "config": {"data": {}}})");
  EXPECT_THAT(run_refused(1, {"compare", "--resume", folder_.at("c")}),
              HasSubstr("takes a tamis with LibTorch"));
  EXPECT_THAT(run_refused(2, {"compare", "--methods", "full"}), HasSubstr("--command is required"));
}

TEST_F(CompareCommand, TrainingCommandsSayWhatTheyNeed) {
  for (const char* command : {"train", "sweep"}) {
    EXPECT_THAT(run_refused(1, {command, "--epochs", "3", "--out", folder_.at("r")}),
                AllOf(HasSubstr("without LibTorch"), HasSubstr("make build"),
                      HasSubstr("pip install tamis[torch]")));
    EXPECT_THAT(run({command, "--help"}).out, HasSubstr("without LibTorch"));
  }
}
#endif

}  // namespace
}  // namespace tamis::test
