// RunFolder: the files of one run. See docs/training.md for what they hold.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "training/trainer/epoch_metrics.h"
#include "training/trainer/run_config.h"

namespace tamis::training {

// Throws std::runtime_error, with the path, if the file cannot be read or is not JSON.
Json read_json(const std::filesystem::path& path);
// A file appears complete or not at all. Throws std::runtime_error.
void write_text(const std::filesystem::path& path, std::string_view text);
// One key per line, and members of objects in it likewise; short enough to read.
void write_json(const std::filesystem::path& path, const Json& json);

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

  // True if the folder has a run in it, finished or not.
  static bool is_run(const std::filesystem::path& path);
  // Settings and metrics of a run that may be in use by another process.
  static RunConfig read_config(const std::filesystem::path& path);
  static std::vector<EpochMetrics> read_metrics(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  void write_config(const RunConfig& config, const RunFacts& facts) const;
  RunFacts read_facts() const;

  // Replaces metrics.jsonl.
  void write_metrics(const std::vector<EpochMetrics>& metrics) const;

 private:
  RunFolder() = default;
  explicit RunFolder(const std::filesystem::path& path);

  std::filesystem::path path_;
  std::unique_ptr<FolderLock> lock_;
};

}  // namespace tamis::training
