#include "runs/run_files.h"

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

// The names of the entries of a folder that are no folders themselves, taken before any is removed.
std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_symlink() || !entry.is_directory()) names.push_back(entry.path().filename());
  }
  return names;
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

void remove_run(const fs::path& folder) {
  for (const std::string& name : files_in(folder)) {
    const bool is_ours = is_run_file(name) || is_run_file(detail::target_of_temporary(name));
    if (is_ours && name != kConfigFile) fs::remove(folder / name);
  }
  Recorder::remove(folder / kRecordFolder);
  fs::remove(folder / kConfigFile);
}

}  // namespace tamis::runs
