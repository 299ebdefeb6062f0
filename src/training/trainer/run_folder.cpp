#include "training/trainer/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <span>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "base/files/atomic_file.h"
#include "base/files/posix_io.h"

namespace tamis::training {

namespace {

namespace fs = std::filesystem;
using detail::concat;

constexpr const char* kConfig = "config.json";
constexpr const char* kMetrics = "metrics.jsonl";

// What a run writes; nothing else is ever removed.
bool is_ours(const std::string& name) {
  constexpr std::array<std::string_view, 6> kPrefixes = {
      "config.json", "metrics.jsonl", "checkpoint", "pruner", "record", "analysis.json"};
  for (const std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

void remove_run(const fs::path& folder) {
  // The settings last: without them it would no longer be known as a run.
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (is_ours(name) && name != kConfig) fs::remove_all(entry.path());
  }
  fs::remove(folder / kConfig);
}

std::string format_json(const Json& json, int depth) {
  // Lists and objects of the third level stay on one line.
  if (!json.is_object() || json.empty() || depth == 2) return json.dump();
  const std::string indent(static_cast<std::size_t>(2 * depth + 2), ' ');
  std::string text = "{";
  for (const auto& [key, value] : json.items()) {
    text += concat(text.size() == 1 ? "\n" : ",\n", indent, Json(key).dump(), ": ",
                   format_json(value, depth + 1));
  }
  return concat(text, "\n", std::string(static_cast<std::size_t>(2 * depth), ' '), "}");
}

}  // namespace

Json read_json(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(concat(path.native(), ": cannot be read"));
  try {
    return Json::parse(file);
  } catch (const Json::exception& error) {
    throw std::runtime_error(concat(path.native(), ": damaged: ", error.what()));
  }
}

void write_text(const fs::path& path, std::string_view text) {
  detail::AtomicFile file(path, text.size());
  file.write(0, std::as_bytes(std::span(text)));
  file.commit();
}

void write_json(const fs::path& path, const Json& json) {
  write_text(path, format_json(json, 0) + "\n");
}

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
    throw std::runtime_error(concat(path.native(), ": holds no run (no ", kConfig, ")"));
  }
  return RunFolder(path);
}

RunFolder RunFolder::join(const fs::path& path) {
  RunFolder folder;
  folder.path_ = path;
  return folder;
}

bool RunFolder::is_run(const fs::path& path) { return fs::is_regular_file(path / kConfig); }

RunConfig RunFolder::read_config(const fs::path& path) {
  return config_from_json(read_json(path / kConfig), (path / kConfig).native());
}

std::vector<EpochMetrics> RunFolder::read_metrics(const fs::path& path) {
  const fs::path file = path / kMetrics;
  std::vector<EpochMetrics> metrics;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const std::string source = concat(file.native(), ", line ", metrics.size() + 1);
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_discarded()) throw std::runtime_error(concat(source, ": damaged"));
    metrics.push_back(metrics_from_json(json, source));
  }
  return metrics;
}

void RunFolder::write_config(const RunConfig& config, const RunFacts& facts) const {
  write_json(path_ / kConfig, to_json(config, facts));
}

RunFacts RunFolder::read_facts() const {
  return facts_from_json(read_json(path_ / kConfig), (path_ / kConfig).native());
}

void RunFolder::write_metrics(const std::vector<EpochMetrics>& metrics) const {
  std::string text;
  for (const EpochMetrics& epoch : metrics) text += to_json(epoch).dump() + "\n";
  write_text(path_ / kMetrics, text);
}

}  // namespace tamis::training
