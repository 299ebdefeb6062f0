// RunFolder: writes the files of one run. docs/run_folder.md says what they hold.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runs/epoch_metrics.h"

namespace tamis::runs {

// Keeps other processes out of a folder while it lives.
class FolderLock {
 public:
  // Throws std::runtime_error if another process holds it.
  explicit FolderLock(const std::filesystem::path& folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

 private:
  int file_;
};

class RunFolder {
 public:
  // What to do with a folder that has a run in it.
  enum class Existing { refuse, overwrite };

  // Throws std::runtime_error if `path` cannot be the folder of a new run: it holds one already
  // (with Existing::refuse), or anything else. Changes nothing.
  static void check_new(const std::filesystem::path& path, Existing existing);
  // A folder for a new run; it is created if it is missing. Throws as check_new() does.
  static RunFolder create(const std::filesystem::path& path, Existing existing);
  // The folder of a run that was started before. Throws std::runtime_error if there is none.
  static RunFolder open(const std::filesystem::path& path);

  // The folder of a run that another process of the same run has created or opened.
  static RunFolder join(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  // Replaces config.json.
  void write_config(const Json& config) const;
  // Replaces metrics.jsonl.
  void write_metrics(const std::vector<EpochMetrics>& metrics) const;

 private:
  RunFolder() = default;
  explicit RunFolder(const std::filesystem::path& path);

  std::filesystem::path path_;
  std::unique_ptr<FolderLock> lock_;
};

}  // namespace tamis::runs
