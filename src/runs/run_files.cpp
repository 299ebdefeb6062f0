#include "runs/run_files.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/files/atomic_file.h"
#include "tamis/recorder.h"

namespace tamis::runs {

namespace {

namespace fs = std::filesystem;

// "-12", or nothing.
bool is_number_suffix(std::string_view text) {
  if (text.empty()) return true;
  return text.size() > 1 && text[0] == '-' &&
         text.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

bool is_numbered(std::string_view name, std::string_view stem, std::string_view suffix) {
  if (!name.starts_with(stem) || !name.ends_with(suffix)) return false;
  if (name.size() < stem.size() + suffix.size()) return false;
  return is_number_suffix(name.substr(stem.size(), name.size() - stem.size() - suffix.size()));
}

// All but the settings.
bool is_file_beside_config(std::string_view name) {
  return name != kConfigFile &&
         (is_run_file(name) || is_run_file(detail::target_of_temporary(name)));
}

}  // namespace

bool is_checkpoint_part(std::string_view name) {
  return is_numbered(name, "checkpoint", ".safetensors") ||
         is_numbered(name, "checkpoint", ".pt") || is_numbered(name, "pruner", ".safetensors") ||
         is_numbered(name, "history", ".safetensors");
}

bool is_run_file(std::string_view name) {
  return name == kConfigFile || name == kMetricsFile || name == kAnalysisFile ||
         name == kCheckpointFile || name == kSamplesFile || name == kGalleryFile ||
         is_checkpoint_part(name);
}

bool is_unfinished_run_file(std::string_view name) {
  const std::string_view target = detail::target_of_temporary(name);
  return is_run_file(target) && target != kAnalysisFile;
}

void remove_files(const fs::path& folder, bool (*is_meant)(std::string_view name)) {
  std::vector<fs::path> paths;  // all of them before any is removed
  for (const auto& entry : fs::directory_iterator(folder)) {
    const bool is_file = entry.is_symlink() || !entry.is_directory();
    if (is_file && is_meant(entry.path().filename().native())) paths.push_back(entry.path());
  }
  for (const fs::path& path : paths) fs::remove(path);
}

bool holds_unfinished_only(const fs::path& folder) {
  const fs::directory_iterator entries(folder);
  return std::all_of(begin(entries), end(entries), [](const auto& entry) {
    return is_unfinished_run_file(entry.path().filename().native());
  });
}

void remove_run(const fs::path& folder) {
  remove_files(folder, is_file_beside_config);
  Recorder::remove(folder / kRecordFolder);
  fs::remove(folder / kConfigFile);
}

}  // namespace tamis::runs
