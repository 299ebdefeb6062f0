// tamis inspect and tamis suspects on states with right checksums and other contents, from the
// command line on.
#include <CLI/CLI.hpp>
#include <stdexcept>

#include "edit_container.h"
#include "made_states.h"
#include "memory_file.h"
#include "program/commands.h"
#include "run_command.h"

namespace {

void add_commands(CLI::App& program) {
  tamis::program::add_inspect(program);
  tamis::program::add_suspects(program);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto states = tamis::fuzz::make_states();
  static tamis::fuzz::MemoryFile file;
  tamis::fuzz::Source source(data, size);
  const bool is_json = source.byte() % 2 == 0;
  tamis::test::ContainerParts parts(states[source.below(states.size())]);
  try {
    tamis::fuzz::edit(parts, source);
    file.write(parts.file());
  } catch (const std::invalid_argument&) {
    return 0;  // The writer refuses it.
  }
  for (const char* const command : {"inspect", "suspects"}) {
    std::vector<std::string> arguments = {"tamis", command, file.path()};
    if (is_json) arguments.emplace_back("--json");
    tamis::fuzz::run_command(add_commands, arguments);
  }
  return 0;
}
