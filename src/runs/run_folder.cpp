#include "runs/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>

#include "base/check.h"
#include "base/files/posix_io.h"
#include "runs/run.h"

namespace tamis::runs {

namespace {

namespace fs = std::filesystem;
using detail::concat;

// What a run writes; nothing else is ever removed.
bool is_ours(const std::string& name) {
  constexpr std::array<std::string_view, 6> kPrefixes = {
      kConfigFile, kMetricsFile, "checkpoint", "pruner", "record", "analysis.json"};
  for (const std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

void remove_run(const fs::path& folder) {
  // The settings last: without them it would no longer be known as a run.
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (is_ours(name) && name != kConfigFile) fs::remove_all(entry.path());
  }
  fs::remove(folder / kConfigFile);
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder)
    : file_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (file_ < 0) detail::throw_io_error(folder, "open", errno);
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(file_);
    throw std::runtime_error(concat(folder.native(), ": another process is working in it"));
  }
}

FolderLock::~FolderLock() { ::close(file_); }

RunFolder::RunFolder(const fs::path& path)
    : path_(path), lock_(std::make_unique<FolderLock>(path)) {}

void RunFolder::check_new(const fs::path& path, Existing existing) {
  if (path.empty()) throw std::invalid_argument("the run's folder must have a name");
  if (fs::exists(path) && !fs::is_directory(path)) {
    throw std::runtime_error(concat(path.native(), ": must be a folder or new, got a file"));
  }
  if (is_run(path)) {
    if (existing == Existing::overwrite) return;
    throw std::runtime_error(concat(path.native(), ": holds a run already; --resume ",
                                    path.native(), " continues it, --overwrite replaces it, --out",
                                    " chooses another folder"));
  }
  if (fs::exists(path) && !fs::is_empty(path)) {
    throw std::runtime_error(
        concat(path.native(), ": is not empty and holds no run; choose another folder"));
  }
}

RunFolder RunFolder::create(const fs::path& path, Existing existing) {
  check_new(path, existing);
  fs::create_directories(path);
  RunFolder folder(path);
  remove_run(path);
  return folder;
}

RunFolder RunFolder::open(const fs::path& path) {
  if (!is_run(path)) {
    throw std::runtime_error(concat(path.native(), ": holds no run (no ", kConfigFile, ")"));
  }
  return RunFolder(path);
}

RunFolder RunFolder::join(const fs::path& path) {
  RunFolder folder;
  folder.path_ = path;
  return folder;
}

void RunFolder::write_config(const Json& config) const { write_json(path_ / kConfigFile, config); }

void RunFolder::write_metrics(const std::vector<EpochMetrics>& metrics) const {
  std::string text;
  for (const EpochMetrics& epoch : metrics) text += to_json(epoch).dump() + "\n";
  write_text(path_ / kMetricsFile, text);
}

}  // namespace tamis::runs
