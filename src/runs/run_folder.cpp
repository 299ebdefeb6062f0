#include "runs/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

#include "base/check.h"
#include "base/files/posix_io.h"
#include "runs/run.h"
#include "runs/run_files.h"
#include "runs/seal.h"

namespace tamis::runs {

namespace fs = std::filesystem;
using detail::concat;

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
    : path_(path), lock_(std::make_unique<FolderLock>(path)) {
  // The lock is held, so nobody is still writing them.
  remove_files(path, is_unfinished_run_file);
}

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
  if (fs::exists(path) && !holds_unfinished_only(path)) {
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

void RunFolder::write_config(const Json& config) const {
  write_sealed_json(path_ / kConfigFile, config);
}

void RunFolder::write_metrics(const std::vector<EpochMetrics>& metrics) const {
  std::string text;
  for (const EpochMetrics& epoch : metrics) text += sealed_line(to_json(epoch)) + "\n";
  write_text(path_ / kMetricsFile, text);
}

}  // namespace tamis::runs
