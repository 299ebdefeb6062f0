// tamis inspect: what is in a state file, verified.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/files/mapped_file.h"
#include "base/files/safetensors_header.h"
#include "program/commands.h"
#include "program/shared/output.h"
#include "program/shared/score_summary.h"
#include "program/shared/spec_flags.h"
#include "program/shared/table.h"
#include "runs/spec_json.h"
#include "tamis/method.h"
#include "tamis/pruner.h"

namespace tamis::program {

namespace {

using nlohmann::ordered_json;

struct InspectArguments {
  std::string state;
  bool json = false;
};

// One array of the file. Bytes as they are on disk.
struct ArrayFacts {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t bytes = 0;
};

struct FileFacts {
  std::uint64_t format_version = 0;
  std::vector<ArrayFacts> arrays;
};

// The header of a safetensors file: its length as 8 bytes, then JSON. Only for files that have been
// verified.
FileFacts read_header(const std::string& path) {
  const detail::MappedFile mapped(path);
  const std::span<const std::byte> file = mapped.bytes();
  std::uint64_t length = 0;
  if (file.size() >= sizeof length) std::memcpy(&length, file.data(), sizeof length);
  if (file.size() < sizeof length || file.size() - sizeof length < length) {
    throw std::runtime_error(path + ": cannot read the header");
  }
  const auto* const text = reinterpret_cast<const char*>(file.data()) + sizeof length;
  const detail::SafetensorsHeader header =
      detail::parse_header({text, static_cast<std::size_t>(length)});
  FileFacts facts;
  for (const auto& [key, value] : header.metadata) {
    if (key == "format_version") facts.format_version = std::stoull(value);
  }
  for (const detail::TensorEntry& entry : header.tensors) {
    facts.arrays.push_back({entry.name, entry.dtype, entry.shape, entry.end - entry.begin});
  }
  return facts;
}

ordered_json to_json(const Pruner& pruner, const FileFacts& file, const std::string& path) {
  const PrunerOptions& options = pruner.options();
  const std::vector<float> scores = pruner.scores();
  ordered_json out = {{"file", path},
                      {"format_version", file.format_version},
                      {"verified", true},
                      {"num_samples", options.num_samples},
                      {"num_epochs", options.num_epochs},
                      {"seed", options.seed},
                      {"delta", options.delta.value()},
                      {"policy", runs::spec_to_json(options.policy)},
                      {"score", runs::spec_to_json(options.score.value())}};
  if (options.homogeneous_batch_size > 0) {
    out["homogeneous_batch_size"] = options.homogeneous_batch_size;
  }
  if (options.min_per_class > 0.0) out["min_per_class"] = options.min_per_class;
  if (options.target_prune) out["target_prune"] = *options.target_prune;
  if (const EpochPlan* const plan = pruner.plan(); plan != nullptr) {
    out["epoch"] = plan->epoch();
    out["pruning"] = plan->pruning();
    out["position"] = pruner.position();
    out["size"] = plan->size();
  }
  out["pruned_share"] = pruner.pruned_share();
  out["num_observations"] = pruner.num_observations();
  out["num_skipped_observations"] = pruner.num_skipped_observations();
  out["num_scored"] = pruner.num_scored();
  if (pruner.num_scored() > 0) out["scores"] = score_statistics_json(scores);
  out["histogram"] = histogram_json(scores);
  out["arrays"] = ordered_json::array();
  for (const ArrayFacts& array : file.arrays) {
    out["arrays"].push_back({{"name", array.name},
                             {"dtype", array.dtype},
                             {"shape", array.shape},
                             {"bytes", array.bytes}});
  }
  return out;
}

std::string arrays_table(const FileFacts& file) {
  std::vector<std::vector<std::string>> rows = {{"array", "type", "shape", "bytes"}};
  for (const ArrayFacts& array : file.arrays) {
    rows.push_back({array.name, array.dtype, fmt::format("[{}]", fmt::join(array.shape, ", ")),
                    with_commas(array.bytes)});
  }
  return "\n" + format_table(rows);
}

std::string summary(const Pruner& pruner, const FileFacts& file, const std::string& path) {
  const PrunerOptions& options = pruner.options();
  const std::vector<float> scores = pruner.scores();
  FactList facts;
  facts.add("file", path);
  facts.add("verified", fmt::format("yes: format {}, all checksums match", file.format_version));
  facts.add("samples", with_commas(options.num_samples));
  facts.add("score", to_text(options.score.value()));
  facts.add("policy", to_text(options.policy));
  facts.add("schedule",
            fmt::format("{}, the first {} pruned (delta {})", counted(options.num_epochs, "epoch"),
                        pruner.schedule().num_pruned_epochs(), options.delta.value()));
  facts.add("seed", fmt::format("{}", options.seed));
  if (options.homogeneous_batch_size > 0) {
    facts.add("batches", counted(options.homogeneous_batch_size, "sample") + " of one weight");
  }
  if (options.min_per_class > 0.0) {
    facts.add("class floor", fmt::format("{:.1f} %", 100.0 * options.min_per_class));
  }
  if (options.target_prune) {
    facts.add("to be pruned", fmt::format("{:.1f} %", 100.0 * *options.target_prune));
  }
  if (const EpochPlan* const plan = pruner.plan(); plan != nullptr) {
    facts.add("epoch",
              fmt::format("{} ({})", plan->epoch(), plan->pruning() ? "pruned" : "annealing"));
    facts.add("position", fmt::format("{} of {} samples", with_commas(pruner.position()),
                                      with_commas(plan->size())));
  } else {
    facts.add("epoch", "none started");
  }
  facts.add("pruned share", fmt::format("{:.1f} % so far", 100.0 * pruner.pruned_share()));
  facts.add("observations", fmt::format("{}, {} skipped", with_commas(pruner.num_observations()),
                                        with_commas(pruner.num_skipped_observations())));
  add_score_facts(scores, facts);
  return facts.text() + arrays_table(file) + score_histogram(scores);
}

void inspect(const InspectArguments& arguments) {
  const Pruner pruner = Pruner::from_file(arguments.state);
  const FileFacts file = read_header(arguments.state);
  print(arguments.json ? format_json(to_json(pruner, file, arguments.state))
                       : summary(pruner, file, arguments.state));
}

}  // namespace

void add_inspect(CLI::App& program) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App& command =
      *program.add_subcommand("inspect", "Show and verify the saved state of a run");
  command.add_option("STATE", arguments->state, "the state, a safetensors file")
      ->required()
      ->type_name("");
  command.add_flag("--json", arguments->json, "print JSON, not tables");
  command.footer(
      R"(Options, progress and counters of the run, its arrays, and a histogram of its scores. A file
that is damaged, or is not such a state, is refused with exit code 1.

Example:
  tamis simulate --samples 10000 --save run.safetensors
  tamis inspect run.safetensors
)");
  command.callback([arguments] { inspect(*arguments); });
}

}  // namespace tamis::program
