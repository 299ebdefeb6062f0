#include "training/trainer/checkpoint.h"

#include <torch/torch.h>

#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/agreement.h"
#include "base/check.h"
#include "base/files/atomic_file.h"
#include "base/files/crc32c.h"
#include "runs/json.h"
#include "runs/metric.h"

namespace tamis::training {

namespace {

namespace fs = std::filesystem;
using detail::concat;
using runs::Json;

constexpr const char* kIndex = "checkpoint.json";
constexpr std::string_view kFormat = "tamis-checkpoint";
constexpr std::uint64_t kFormatVersion = 1;

std::vector<char> pack(const CheckpointParts& parts) {
  torch::serialize::OutputArchive model;
  parts.model.save(model);
  torch::serialize::OutputArchive optimizer;
  parts.optimizer.save(optimizer);
  torch::serialize::OutputArchive archive;
  archive.write("model", model);
  archive.write("optimizer", optimizer);
  std::vector<char> bytes;
  archive.save_to([&](const void* data, std::size_t size) {
    const char* const begin = static_cast<const char*>(data);
    bytes.insert(bytes.end(), begin, begin + size);
    return size;
  });
  return bytes;
}

void unpack(const std::vector<char>& bytes, const CheckpointParts& parts) {
  torch::serialize::InputArchive archive;
  archive.load_from(bytes.data(), bytes.size());
  torch::serialize::InputArchive model;
  archive.read("model", model);
  parts.model.load(model);
  torch::serialize::InputArchive optimizer;
  archive.read("optimizer", optimizer);
  parts.optimizer.load(optimizer);
}

std::uint32_t checksum(std::span<const char> bytes) { return detail::crc32c(std::as_bytes(bytes)); }

std::vector<char> read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw std::runtime_error(concat(path.native(), ": cannot be read, but ", kIndex, " names it"));
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_bytes(const fs::path& path, std::span<const char> bytes) {
  detail::AtomicFile file(path, bytes.size());
  file.write(0, std::as_bytes(bytes));
  file.commit();
}

struct FileNames {
  std::uint64_t number = 0;  // of the checkpoint, counted from the start of the run
  std::string model;
  std::string pruner;
};

// Removes the files of other checkpoints, whole or half-written.
void remove_others(const fs::path& folder, const FileNames& names) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool is_part = name.starts_with("checkpoint") || name.starts_with("pruner");
    if (is_part && name != kIndex && name != names.model && name != names.pruner) {
      fs::remove(entry.path());
    }
  }
}

// Names that the present checkpoint does not use.
FileNames new_names(const fs::path& folder, bool is_final) {
  std::uint64_t number = 1;
  if (fs::exists(folder / kIndex)) {
    number += runs::read_json(folder / kIndex).value("number", std::uint64_t{0});
  }
  const std::string suffix = is_final ? "" : concat("-", number);
  return {number, concat("checkpoint", suffix, ".pt"), concat("pruner", suffix, ".safetensors")};
}

Json to_json(const CheckpointState& state, const FileNames& names, std::uint32_t model_checksum) {
  return {
      {"format", kFormat},
      {"format_version", kFormatVersion},
      {"number", names.number},
      {"model", names.model},
      {"model_crc32c", model_checksum},
      {"pruner", names.pruner},
      {"step", state.step},
      {"epochs_done", state.epochs_done},
      {"running", to_json(state.running)},
      {"last_metrics", state.last_metrics ? runs::to_json(*state.last_metrics) : Json(nullptr)}};
}

// The state, and the parts restored.
CheckpointState restore(const fs::path& folder, const Json& index, const CheckpointParts& parts) {
  const std::string source = (folder / kIndex).native();
  runs::require_format(index, kFormat, kFormatVersion, source);
  const fs::path model = folder / index.at("model").get<std::string>();
  const fs::path pruner = folder / index.at("pruner").get<std::string>();
  std::vector<char> bytes;
  detail::together(parts.communicator, [&] {
    bytes = read_bytes(model);
    if (checksum(bytes) != index.at("model_crc32c").get<std::uint32_t>()) {
      throw std::runtime_error(
          concat(model.native(), ": damaged, its checksum is not the one in ", kIndex));
    }
  });
  parts.pruner.load(pruner);
  unpack(bytes, parts);
  CheckpointState state{.step = index.at("step").get<std::uint64_t>(),
                        .epochs_done = index.at("epochs_done").get<std::uint64_t>(),
                        .running = running_from_json(index.at("running"), source)};
  if (const Json& last = index.at("last_metrics"); !last.is_null()) {
    state.last_metrics = runs::epoch_from_json(last, runs::classification_metrics(), source);
  }
  return state;
}

}  // namespace

void save_checkpoint(const fs::path& folder, const CheckpointParts& parts,
                     const CheckpointState& state, bool is_final) {
  Communicator& communicator = parts.communicator;
  const bool writes = communicator.rank() == 0;
  FileNames names;
  std::vector<char> bytes;
  detail::together(communicator, [&] {
    if (!writes) return;
    names = new_names(folder, is_final);
    bytes = pack(parts);
    write_bytes(folder / names.model, bytes);
  });
  parts.pruner.save(folder / names.pruner);
  detail::together(communicator, [&] {
    if (!writes) return;
    runs::write_json(folder / kIndex, to_json(state, names, checksum(bytes)));
    remove_others(folder, names);
  });
}

std::optional<CheckpointState> load_checkpoint(const fs::path& folder,
                                               const CheckpointParts& parts) {
  const bool is_there = fs::exists(folder / kIndex);
  detail::require_same(parts.communicator, is_there ? "a checkpoint" : "no checkpoint");
  if (!is_there) return std::nullopt;
  const Json index = runs::read_json(folder / kIndex);
  try {
    return restore(folder, index, parts);
  } catch (const Json::exception& error) {
    throw std::runtime_error(
        concat((folder / kIndex).native(), ": not as tamis writes it: ", error.what()));
  }
}

}  // namespace tamis::training
