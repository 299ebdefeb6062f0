// What launchers tell their processes by environment variables.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "base/check.h"
#include "tamis/libtorch/process_group.h"

namespace tamis::libtorch {

namespace {

using tamis::detail::concat;

struct Launcher {
  const char* rank;
  const char* size;
};
constexpr Launcher kLaunchers[] = {{"RANK", "WORLD_SIZE"},
                                   {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                   {"PMI_RANK", "PMI_SIZE"},
                                   {"SLURM_PROCID", "SLURM_NTASKS"}};

std::size_t read_count(const char* name, std::size_t most) {
  const std::string text = std::getenv(name);
  const bool is_number =
      !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == text.npos;
  if (!is_number || std::stoul(text) > most) {
    throw std::invalid_argument(
        concat("environment: ", name, " must be a whole number up to ", most, ", got ", text));
  }
  return std::stoul(text);
}

std::string read_text(const char* name, const char* otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? text : otherwise;
}

}  // namespace

std::optional<ProcessGroupOptions> process_group_from_environment() {
  for (const Launcher& launcher : kLaunchers) {
    if (std::getenv(launcher.rank) == nullptr || std::getenv(launcher.size) == nullptr) continue;
    constexpr std::size_t kMostRanks = 1'000'000;
    ProcessGroupOptions options;
    options.rank = read_count(launcher.rank, kMostRanks);
    options.size = read_count(launcher.size, kMostRanks);
    if (options.rank >= options.size) {
      throw std::invalid_argument(concat("environment: ", launcher.rank, " must be below ",
                                         launcher.size, " (", options.size, "), got ",
                                         options.rank));
    }
    options.host = read_text("MASTER_ADDR", "127.0.0.1");
    if (std::getenv("MASTER_PORT") != nullptr) {
      options.port = static_cast<std::uint16_t>(read_count("MASTER_PORT", 65535));
    }
    for (const char* const name :
         {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}) {
      if (std::getenv(name) != nullptr) options.num_here = read_count(name, kMostRanks);
    }
    options.has_agent_store = read_text("TORCHELASTIC_USE_AGENT_STORE", "") == "True";
    options.prefix = read_text("TORCHELASTIC_RUN_ID", "run") + "/" +
                     read_text("TORCHELASTIC_RESTART_COUNT", "0");
    return options;
  }
  return std::nullopt;
}

}  // namespace tamis::libtorch
