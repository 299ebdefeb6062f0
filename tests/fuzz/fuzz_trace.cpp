// tamis replay and tamis plan on any JSON, from the command line on: they end with 0, 1 or 2.
#include <CLI/CLI.hpp>
#include <stdexcept>
#include <string>

#include "json_document.h"
#include "memory_file.h"
#include "program/commands.h"
#include "run_command.h"
#include "runs/json.h"
#include "source.h"

namespace {

using tamis::fuzz::run_command;
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

void add_commands(CLI::App& program) {
  tamis::program::add_replay(program);
  tamis::program::add_plan(program);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::string_view kKeys[] = {"num_samples", "batches", "losses", "scores"};
  constexpr std::string_view kScores[] = {"batch-loss", "batch-loss-mean", "sample-loss",
                                          "loss-ucb", "reconstruction"};
  constexpr std::string_view kPolicies[] = {"infobatch", "seta", "epsilon-greedy", "ucb", "trim"};
  static tamis::fuzz::MemoryFile file;
  Source source(data, size);
  const std::uint8_t choice = source.byte();
  const std::string score(source.pick(kScores));
  const std::string policy(source.pick(kPolicies));
  const std::string text =
      choice % 4 == 0 ? source.rest() : tamis::fuzz::make_object(source, kKeys);
  if (!is_small(text)) return 0;
  file.write(text);
  if (choice % 2 == 0) {
    run_command(add_commands, {"tamis", "replay", file.path(), "--score", score, "--json"});
  } else {
    run_command(add_commands, {"tamis", "plan", "--scores", file.path(), "--epochs", "5", "--epoch",
                               "2", "--policy", policy, "--json"});
  }
  return 0;
}
