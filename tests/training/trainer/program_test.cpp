// `tamis train` and `tamis compare` as a user meets them: real processes on real data.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "paths.h"
#include "support/scratch_folder.h"
#include "support/signals.h"
#include "support/tiny_run.h"
#include "training/data/png_image.h"

namespace tamis::training::program_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// One process of the program, with its output in a file.
class Program {
 public:
  Program(std::vector<std::string> arguments, fs::path output, int ignored_signal = 0)
      : output_(std::move(output)) {
    arguments.insert(arguments.begin(), TAMIS_PROGRAM);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    process_ = ::fork();
    if (process_ != 0) return;
    const int file = ::open(output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
    test::set_signals(ignored_signal);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ~Program() {
    if (process_ > 0 && !has_ended_) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, nullptr, 0);
    }
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void send(int signal) const { ::kill(process_, signal); }
  int exit_code() {
    int status = 0;
    ::waitpid(process_, &status, 0);
    has_ended_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string output() const {
    std::ifstream file(output_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  fs::path output_;
  pid_t process_ = -1;
  bool has_ended_ = false;
};

struct Answer {
  int exit_code;
  std::string output;
};

Answer run_program(const test::ScratchFolder& scratch, const std::vector<std::string>& arguments) {
  Program program(arguments, scratch / "output");
  const int code = program.exit_code();
  return {code, program.output()};
}

std::vector<std::string> small_run(const std::string& out, const std::string& epochs = "3") {
  return {
      "train",         "--limit", "1500",    "--test-limit", "100",       "--epochs", epochs,
      "--batch-size",  "32",      "--width", "0.25",         "--threads", "1",        "--method",
      "bls-infobatch", "--out",   out};
}

// So many that a signal after the first one comes before the last, however fast the machine is.
const std::string kManyEpochs = "20";

bool wait_for(const fs::path& path) {
  for (int k = 0; k < 3000 && !fs::exists(path); ++k) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return fs::exists(path);
}

std::vector<torch::Tensor> final_weights(const fs::path& run) {
  const RunConfig config = read_run_config(run);
  const DataSplits data = *load_run_data(config.data);
  Trainer trainer(config, data, RunFolder::open(run));
  return test::weights_of(trainer);
}

TEST(TrainProgram, KeepsPrecisionAndLayoutInTheSettings) {
  const test::ScratchFolder scratch;
  const std::string out = scratch / "run";
  auto arguments = small_run(out, "1");
  arguments.insert(arguments.end(), {"--precision", "bfloat16", "--channels-last", "off"});
  const Answer answer = run_program(scratch, arguments);
  ASSERT_EQ(answer.exit_code, 0) << answer.output;
  EXPECT_THAT(answer.output, HasSubstr("1 thread, bfloat16"));
  const RunConfig config = read_run_config(out);
  EXPECT_EQ(config.training.precision, Precision::bfloat16);
  EXPECT_FALSE(config.training.channels_last);
  auto wrong = small_run(out, "1");
  wrong.insert(wrong.end(), {"--overwrite", "--precision", "float16"});
  EXPECT_THAT(run_program(scratch, wrong).output,
              HasSubstr("--precision must be one of float32, bfloat16, got float16"));
}

TEST(TrainProgram, RecordsWhatItDidToTheData) {
  const test::ScratchFolder scratch;
  const std::string out = scratch / "run";
  auto arguments = small_run(out, "1");
  arguments.insert(arguments.end(), {"--label-noise", "0.4", "--imbalance", "0.1"});
  ASSERT_EQ(run_program(scratch, arguments).exit_code, 0);
  const Json config = Json::parse(std::ifstream(fs::path(out) / "config.json"));
  EXPECT_EQ(config["data"]["label_noise"], 0.4);
  EXPECT_EQ(config["data"]["imbalance"], 0.1);
  EXPECT_LT(config["data"]["num_train"], 800);  // of 1500
  arguments.back() = "0";
  EXPECT_EQ(run_program(scratch, arguments).exit_code, 2);
}

TEST(TrainProgram, SaysThatATargetWasNotReached) {
  const test::ScratchFolder scratch;
  auto arguments = small_run(scratch / "run", "4");
  arguments.insert(arguments.end(), {"--target-prune", "0.5"});
  const Answer missed = run_program(scratch, arguments);
  EXPECT_EQ(missed.exit_code, 0);
  EXPECT_THAT(missed.output,
              HasSubstr("the target was to prune 50.0 %, which policy infobatch could not"));
  arguments.back() = "0.1";
  arguments.push_back("--overwrite");
  EXPECT_THAT(run_program(scratch, arguments).output, Not(HasSubstr("the target was")));
  arguments[arguments.size() - 2] = "0.8";
  const Answer refused = run_program(scratch, arguments);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.output, HasSubstr("target_prune must be at most 0.675"));
}

// A lost connection to the terminal is no reason to lose work.
TEST(TrainProgram, SavesWhenItsTerminalIsClosed) {
  const test::ScratchFolder scratch;
  const std::string out = scratch / "run";
  Program program(small_run(out, "1000"), scratch / "output");
  ASSERT_TRUE(wait_for(fs::path(out) / "metrics.jsonl"));
  program.send(SIGHUP);
  EXPECT_EQ(program.exit_code(), 128 + SIGHUP);
  EXPECT_TRUE(fs::exists(fs::path(out) / "checkpoint.json"));
  EXPECT_THAT(program.output(), HasSubstr("tamis train --resume " + out));
}

// As nohup starts it.
TEST(TrainProgram, GoesOnWhenItsTerminalIsClosedIfItWasToldTo) {
  const test::ScratchFolder scratch;
  const std::string out = scratch / "run";
  Program program(small_run(out, "6"), scratch / "output", SIGHUP);
  ASSERT_TRUE(wait_for(fs::path(out) / "metrics.jsonl"));
  ASSERT_FALSE(runs::read_run(out).is_finished()) << "the signal comes too late";
  program.send(SIGHUP);
  EXPECT_EQ(program.exit_code(), 0) << program.output();
  EXPECT_TRUE(runs::read_run(out).is_finished());
}

TEST(TrainProgram, RefusesAPathThatItsSettingsCannotHold) {
  const test::ScratchFolder scratch;
  const fs::path data = scratch / "data\xff";
  for (const char* const split : {"train", "test"}) {
    for (const char* const label : {"a", "b"}) {
      fs::create_directories(data / split / label);
      for (int k = 0; k < 8; ++k) {
        write_png(
            data / split / label / (std::to_string(k) + ".png"),
            {.height = 8, .width = 8, .channels = 1, .pixels = std::vector<std::uint8_t>(64)});
      }
    }
  }
  const Answer answer =
      run_program(scratch, {"train", "--data", "folder", "--data-dir", data.string(), "--epochs",
                            "1", "--batch-size", "4", "--threads", "1", "--out", scratch / "run"});
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_THAT(answer.output, HasSubstr("tamis: text of a JSON file must be UTF-8, got"));
}

TEST(TrainProgram, InterruptedBySignalsAndResumedGivesTheUninterruptedRun) {
  const test::ScratchFolder scratch;
  const std::string whole = scratch / "whole";
  const std::string pieces = scratch / "pieces";
  ASSERT_EQ(run_program(scratch, small_run(whole, kManyEpochs)).exit_code, 0);
  {
    Program program(small_run(pieces, kManyEpochs), scratch / "output");
    ASSERT_TRUE(wait_for(fs::path(pieces) / "metrics.jsonl"));
    program.send(SIGTERM);
    EXPECT_EQ(program.exit_code(), 128 + SIGTERM);
    EXPECT_THAT(program.output(), HasSubstr("tamis train --resume " + pieces));
  }
  ASSERT_LT(runs::read_run(pieces).epochs.size(), std::stoul(kManyEpochs))
      << "the signal came too late";
  {
    Program program({"train", "--resume", pieces}, scratch / "output");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    program.send(SIGINT);  // before or after the handler is there
    const int code = program.exit_code();
    EXPECT_TRUE(code == 128 + SIGINT || code == -SIGINT || code == 0) << code;
  }
  EXPECT_EQ(run_program(scratch, {"train", "--resume", pieces}).exit_code, 0);
  EXPECT_TRUE(test::same_bits(final_weights(whole), final_weights(pieces)));
  EXPECT_EQ(test::timeless(runs::read_run(whole).epochs),
            test::timeless(runs::read_run(pieces).epochs));
}

TEST(TrainProgram, KilledAtAnyMomentItGoesOnFromItsLastCheckpoint) {
  const test::ScratchFolder scratch;
  const std::string whole = scratch / "whole";
  const std::string pieces = scratch / "pieces";
  ASSERT_EQ(run_program(scratch, small_run(whole, kManyEpochs)).exit_code, 0);
  {
    Program program(small_run(pieces, kManyEpochs), scratch / "output");
    ASSERT_TRUE(wait_for(fs::path(pieces) / "checkpoint.json"));
    program.send(SIGKILL);
    EXPECT_EQ(program.exit_code(), -SIGKILL);
  }
  EXPECT_EQ(run_program(scratch, {"train", "--resume", pieces}).exit_code, 0);
  EXPECT_TRUE(test::same_bits(final_weights(whole), final_weights(pieces)));
}

TEST(TrainProgram, PrintsOneLinePerEpochAndTheResult) {
  const test::ScratchFolder scratch;
  const Answer answer = run_program(scratch, small_run(scratch / "run", "2"));
  EXPECT_EQ(answer.exit_code, 0);
  EXPECT_THAT(answer.output,
              AllOf(HasSubstr("epoch 1/2  test accuracy"), HasSubstr("epoch 2/2  test accuracy"),
                    HasSubstr("test accuracy"), HasSubstr("spent on pruning")));
  EXPECT_EQ(answer.output.find('\x1b'), std::string::npos);
  auto arguments = small_run(scratch / "json", "1");
  arguments.emplace_back("--json");
  const Json json = Json::parse(run_program(scratch, arguments).output);
  EXPECT_EQ(json["epochs"], 1);
  EXPECT_TRUE(json["test_accuracy"].is_number());
}

TEST(TrainProgram, RefusesAFolderThatHoldsARun) {
  const test::ScratchFolder scratch;
  ASSERT_EQ(run_program(scratch, small_run(scratch / "run", "1")).exit_code, 0);
  const Answer answer = run_program(scratch, small_run(scratch / "run", "1"));
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_THAT(answer.output, AllOf(HasSubstr("--resume"), HasSubstr("--overwrite")));
}

TEST(TrainProgram, SaysWhatIsWrongWithTheCommandLine) {
  const test::ScratchFolder scratch;
  const auto refused = [&](std::vector<std::string> arguments, const char* message) {
    arguments.insert(arguments.begin(), "train");
    const Answer answer = run_program(scratch, arguments);
    EXPECT_EQ(answer.exit_code, 2) << answer.output;
    EXPECT_THAT(answer.output, HasSubstr(message));
  };
  refused({"--method", "magic"}, "bls-infobatch");
  refused({"--method", "seta", "--alpha", "0.5"}, "--alpha is not an option of seta");
  refused({"--method", "seta", "--policy", "seta"}, "--method");
  refused({"--epochs", "many"}, "--epochs must be a whole number");
  refused({"--learning-rate", "0"}, "learning_rate must be in (0, 1e6]");
  refused({"--optimizer", "lamb"}, "sgd, adamw");
  refused({"--data", "imagenet"}, "fashion-mnist");
  refused({"--model", "vgg"}, "resnet18");
  refused({"--preset", "slow"}, "quick");
  refused({"--out", ""}, "--out must not be empty");
  refused({"--resume", ""}, "--resume must not be empty");
  refused({"--resume", "runs/x", "--epochs", "3"}, "--resume takes all settings from the run");
}

TEST(TrainProgram, SaysWhatToInstallWhenTheDataAreMissing) {
  const test::ScratchFolder scratch;
  const Answer answer = run_program(scratch, {"train", "--data", "cifar10", "--data-dir",
                                              scratch.path().string(), "--out", scratch / "run"});
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_THAT(answer.output, AllOf(HasSubstr("CIFAR-10"), HasSubstr("make data")));
  EXPECT_FALSE(fs::exists(scratch / "run"));
  EXPECT_THAT(run_program(scratch, {"train", "--resume", scratch / "none"}).output,
              HasSubstr("holds no run"));
}

TEST(CompareProgram, BeginsWithTheRowsOfAnEqualBudget) {
  const test::ScratchFolder scratch;
  const std::string out = scratch / "compare";
  std::vector<std::string> arguments = {
      "compare",  "--limit",   "400",     "--test-limit",  "50",
      "--epochs", "4",         "--width", "0.25",          "--seeds",
      "0",        "--threads", "1",       "--methods",     "infobatch",
      "--quiet",  "--out",     out,       "--equal-budget"};
  const Answer refused = run_program(scratch, arguments);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.output, HasSubstr("--target-prune 0.3"));
  EXPECT_FALSE(fs::exists(out));
  arguments.insert(arguments.end(), {"--target-prune", "0.5", "--reach", "0.2"});
  const Answer answer = run_program(scratch, arguments);
  ASSERT_EQ(answer.exit_code, 0) << answer.output;
  EXPECT_THAT(answer.output, HasSubstr("to 20.00 %"));
  const Json summary = runs::read_json(fs::path(out) / "summary.json");
  const char* const labels[] = {"full", "fewer-epochs", "random-dynamic",
                                "random-dynamic:delta=0.875", "infobatch"};
  ASSERT_EQ(summary["rows"].size(), 5U);
  for (std::size_t k = 0; k < 5; ++k) EXPECT_EQ(summary["rows"][k]["method"], labels[k]);
  EXPECT_EQ(summary["rows"][1]["pruned_share"], 0.5);
  EXPECT_EQ(summary["reach"], 0.2);
}

TEST(CompareProgram, InterruptedItContinuesAndEndsWithTheTable) {
  const test::ScratchFolder scratch;
  const std::string out = scratch / "compare";
  const std::vector<std::string> arguments = {
      "compare",  "--limit",   "1500",    "--test-limit", "100",
      "--epochs", "2",         "--width", "0.25",         "--threads",
      "1",        "--methods", "full",    "seta",         "bls-seta",
      "--seeds",  "0",         "1",       "--batch-size", "32",
      "--out",    out};
  {
    Program program(arguments, scratch / "output");
    ASSERT_TRUE(wait_for(fs::path(out) / "seta-seed0" / "config.json"));
    program.send(SIGINT);
    EXPECT_EQ(program.exit_code(), 128 + SIGINT);
    EXPECT_THAT(program.output(), HasSubstr("tamis compare --resume " + out));
  }
  EXPECT_FALSE(fs::exists(fs::path(out) / "summary.json"));
  const Answer answer = run_program(scratch, arguments);
  EXPECT_EQ(answer.exit_code, 0);
  EXPECT_THAT(answer.output,
              AllOf(HasSubstr("full seed 0  test accuracy"), HasSubstr("(was done)"),
                    HasSubstr("difference to full"), HasSubstr("2 seeds"), HasSubstr(out)));
  EXPECT_EQ(runs::read_json(fs::path(out) / "summary.json")["rows"].size(), 3U);
  const Answer again = run_program(scratch, {"compare", "--resume", out, "--json"});
  EXPECT_EQ(Json::parse(again.output)["rows"].size(), 3U);
  const Answer other = run_program(
      scratch, {"compare", "--command", "exit 3;", "--methods", "full", "--out", scratch / "c"});
  EXPECT_EQ(other.exit_code, 3) << other.output;
}

}  // namespace tamis::training::program_test
