// tamis replay and tamis plan on any JSON, from the command line on: they end with 0, 1 or 2.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "json_document.h"
#include "memory_file.h"
#include "program/commands.h"
#include "program/shared/program.h"
#include "runs/json.h"
#include "source.h"

namespace {

using tamis::fuzz::Source;

// Large data sets take memory by right, but no fuzzer has so much.
bool is_small(const std::string& text) {
  try {
    const auto document = tamis::runs::parse_json(text, "text");
    if (!document.is_object() || !document.contains("num_samples")) return true;
    const auto& number = document["num_samples"];
    return !number.is_number() || number.get<double>() < 1e5;
  } catch (const std::runtime_error&) {
    return true;
  }
}

void run(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const int code = tamis::program::run_program(static_cast<int>(arguments.size()), argv.data(),
                                               [](CLI::App& program) {
                                                 tamis::program::add_replay(program);
                                                 tamis::program::add_plan(program);
                                               });
  if (code < 0 || code > 2) std::abort();
}

// What the program prints is not what is looked for. libFuzzer sees to that itself, and keeps
// standard error for its own reports; here TAMIS_FUZZ_LOUD brings it back.
void silence() {
#ifndef TAMIS_FUZZ
  const int nothing = ::open("/dev/null", O_WRONLY);
  ::dup2(nothing, STDOUT_FILENO);
  if (std::getenv("TAMIS_FUZZ_LOUD") == nullptr) ::dup2(nothing, STDERR_FILENO);
  ::close(nothing);
#endif
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::string_view kKeys[] = {"num_samples", "batches", "losses", "scores"};
  constexpr std::string_view kScores[] = {"batch-loss", "batch-loss-mean", "sample-loss",
                                          "loss-ucb", "reconstruction"};
  constexpr std::string_view kPolicies[] = {"infobatch", "seta", "epsilon-greedy", "ucb", "trim"};
  static tamis::fuzz::MemoryFile file;
  static const bool is_silent = (silence(), true);
  (void)is_silent;
  Source source(data, size);
  const std::uint8_t choice = source.byte();
  const std::string score(source.pick(kScores));
  const std::string policy(source.pick(kPolicies));
  const std::string text =
      choice % 4 == 0 ? source.rest() : tamis::fuzz::make_object(source, kKeys);
  if (!is_small(text)) return 0;
  file.write(text);
  if (choice % 2 == 0) {
    run({"tamis", "replay", file.path(), "--score", score, "--json"});
  } else {
    run({"tamis", "plan", "--scores", file.path(), "--epochs", "5", "--epoch", "2", "--policy",
         policy, "--json"});
  }
  return 0;
}
