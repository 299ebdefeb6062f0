#include "training/trainer/checkpoint.h"

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/agreement.h"
#include "base/check.h"
#include "runs/metric.h"
#include "runs/run_files.h"
#include "runs/seal.h"
#include "training/trainer/weights_file.h"

namespace tamis::training {

namespace {

namespace fs = std::filesystem;
using detail::concat;
using runs::Json;

// Version 1 had the weights as TorchScript.
constexpr runs::SealedFormat kCheckpointFormat = {.name = "tamis-checkpoint",
                                                  .newest = 2,
                                                  .first_sealed = 2,
                                                  .cure = "--overwrite begins the run again"};

runs::SealedDocument read_index(const fs::path& folder) {
  return runs::read_sealed_json(folder / runs::kCheckpointFile, kCheckpointFormat);
}

struct FileNames {
  std::uint64_t number = 0;  // of the checkpoint, counted from the start of the run
  std::string model;
  std::string pruner;
  std::string history;
};

// Removes the files of other checkpoints, whole or half-written.
void remove_others(const fs::path& folder, const FileNames& names) {
  std::vector<fs::path> others;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() || name == names.model || name == names.pruner ||
        name == names.history) {
      continue;
    }
    if (runs::is_checkpoint_part(name) || runs::is_unfinished_run_file(name)) {
      others.push_back(entry.path());
    }
  }
  for (const fs::path& path : others) fs::remove(path);
}

// Names that the present checkpoint does not use.
FileNames new_names(const fs::path& folder, bool is_final, bool has_history) {
  std::uint64_t number = 1;
  if (fs::exists(folder / runs::kCheckpointFile)) {
    const Json index = read_index(folder).json;
    number += runs::Fields(index, (folder / runs::kCheckpointFile).native()).whole("number");
  }
  const std::string suffix = is_final ? "" : concat("-", number);
  return {number, concat("checkpoint", suffix, ".safetensors"),
          concat("pruner", suffix, ".safetensors"),
          has_history ? concat("history", suffix, ".safetensors") : ""};
}

Json to_json(const CheckpointState& state, const FileNames& names) {
  Json json = {
      {"format", kCheckpointFormat.name},
      {"format_version", kCheckpointFormat.newest},
      {"number", names.number},
      {"model", names.model},
      {"pruner", names.pruner},
      {"step", state.step},
      {"epochs_done", state.epochs_done},
      {"running", to_json(state.running)},
      {"last_metrics", state.last_metrics ? runs::to_json(*state.last_metrics) : Json(nullptr)}};
  if (!names.history.empty()) json["history"] = names.history;
  return json;
}

// The file that the index names: one of the folder's own, wherever the index comes from.
std::string part_of(const runs::Fields& index, const char* key) {
  const std::string name = index.text(key);
  if (!runs::is_checkpoint_part(name)) {
    runs::refuse(index.source(), key, "the name of a part of a checkpoint", name);
  }
  return name;
}

// The state, and the parts restored.
CheckpointState restore(const fs::path& folder, const CheckpointParts& parts) {
  const auto [json, version] = read_index(folder);
  const runs::Fields index(json, (folder / runs::kCheckpointFile).native());
  if (version == 1) {
    throw std::runtime_error(concat(
        index.source(), ": names weights that an older tamis wrote as TorchScript, and this ",
        "one executes nothing that a file says; finish the run with the version that began ",
        "it, or begin it again with --overwrite"));
  }
  FileNames names{.number = index.whole("number"),
                  .model = part_of(index, "model"),
                  .pruner = part_of(index, "pruner"),
                  .history = {}};
  if (index.find("history") != nullptr) names.history = part_of(index, "history");
  CheckpointState state{.step = index.whole("step"),
                        .epochs_done = index.whole("epochs_done"),
                        .running = running_from_json(index.object("running").json(),
                                                     index.object("running").source())};
  if (const Json* const last = index.find("last_metrics")) {
    state.last_metrics =
        runs::epoch_from_json(*last, runs::classification_metrics(), index.source());
  }
  state.has_history = parts.history != nullptr && !names.history.empty();
  if (state.has_history) {
    parts.history->load(folder / names.history, state.step, state.epochs_done);
  }
  parts.pruner.load(folder / names.pruner);
  detail::together(parts.communicator, [&] {
    load_weights(folder / names.model, state.step, parts.model, parts.optimizer);
    // A process that was killed while it saved leaves the checkpoint before, or half of one.
    if (parts.communicator.rank() == 0) remove_others(folder, names);
  });
  return state;
}

}  // namespace

void save_checkpoint(const fs::path& folder, const CheckpointParts& parts,
                     const CheckpointState& state, bool is_final) {
  Communicator& communicator = parts.communicator;
  const bool writes = communicator.rank() == 0;
  FileNames names;
  detail::together(communicator, [&] {
    if (!writes) return;
    names = new_names(folder, is_final, parts.history != nullptr);
    save_weights(folder / names.model, state.step, parts.model, parts.optimizer);
    if (parts.history != nullptr) parts.history->save(folder / names.history, state.step);
  });
  parts.pruner.save(folder / names.pruner);
  detail::together(communicator, [&] {
    if (!writes) return;
    runs::write_sealed_json(folder / runs::kCheckpointFile, to_json(state, names));
    remove_others(folder, names);
  });
}

std::optional<CheckpointState> load_checkpoint(const fs::path& folder,
                                               const CheckpointParts& parts) {
  const bool is_there = fs::exists(folder / runs::kCheckpointFile);
  detail::require_same(parts.communicator, is_there ? "a checkpoint" : "no checkpoint");
  if (!is_there) return std::nullopt;
  return restore(folder, parts);
}

}  // namespace tamis::training
