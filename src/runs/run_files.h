// The names of the files that a run writes. Only these are ever removed: what people keep beside
// them is theirs.
#pragma once

#include <filesystem>
#include <string_view>

namespace tamis::runs {

inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kMetricsFile = "metrics.jsonl";
inline constexpr const char* kAnalysisFile = "analysis.json";
inline constexpr const char* kCheckpointFile = "checkpoint.json";
inline constexpr const char* kSamplesFile = "samples.json";
inline constexpr const char* kGalleryFile = "gallery.json";
inline constexpr const char* kRecordFolder = "record";

// "checkpoint.safetensors", "pruner-12.safetensors", "history-12.safetensors", and
// "checkpoint-3.pt" of older versions: the parts that checkpoint.json names.
bool is_checkpoint_part(std::string_view name);
// Any file of a run but those in its recording.
bool is_run_file(std::string_view name);
// The temporary file of one that the run itself was writing when it was killed. Not of
// analysis.json: another process may be writing that while the run goes on.
bool is_unfinished_run_file(std::string_view name);

// Removes the files in a folder whose names are meant; folders stay, whatever they are called.
void remove_files(const std::filesystem::path& folder, bool (*is_meant)(std::string_view name));
// True if the folder is empty but for what a killed process had begun to write.
bool holds_unfinished_only(const std::filesystem::path& folder);

// Removes the files of a run, its settings last: without them it would no longer be known as one.
void remove_run(const std::filesystem::path& folder);

}  // namespace tamis::runs
