#include "runs/sample_list.h"

#include <fmt/format.h>

#include <limits>
#include <stdexcept>

#include "runs/seal.h"

namespace tamis::runs {

namespace {

// Other programs may leave the checksum out.
constexpr SealedFormat kSamplesFormat = {
    .name = "tamis-samples",
    .newest = 1,
    .first_sealed = 2,
    .cure = "whoever changed it removes the member \"crc32c\""};

std::uint64_t read_whole(const Json& value, const char* key, const std::string& source) {
  std::uint64_t number = 0;
  if (!get_whole(value, std::uint64_t{1} << 53U, number)) {
    refuse(source, key, "whole numbers of at least 0", value);
  }
  return number;
}

std::string read_name(const Json& value, const char* key, const std::string& source) {
  if (!value.is_string()) refuse(source, key, "texts", value);
  return value.get<std::string>();
}

// A column with one entry per sample; nothing if the document has none.
template <typename Value, typename Read>
std::vector<Value> read_column(const Json& json, const char* key, std::uint64_t num_samples,
                               const std::string& source, Read read) {
  std::vector<Value> column;
  if (!json.contains(key)) return column;
  const Json& values = array_member(json, key, source);
  if (values.size() != num_samples) {
    refuse(source, fmt::format("number of {}", key),
           fmt::format("that of the run's training samples ({})", num_samples), values.size());
  }
  column.reserve(values.size());
  for (const Json& value : values) column.push_back(static_cast<Value>(read(value, key, source)));
  return column;
}

}  // namespace

std::string SampleList::class_name(std::int64_t label) const {
  const auto place = static_cast<std::size_t>(label);
  return place < classes.size() ? classes[place] : fmt::format("{}", label);
}

std::string SampleList::place(std::size_t sample) const {
  if (!files.empty()) return files[sample];
  return fmt::format("{}", indices.empty() ? sample : indices[sample]);
}

void write_samples(const std::filesystem::path& folder, const SampleList& samples) {
  Json json = {{"format", kSamplesFormat.name}, {"format_version", kSamplesFormat.newest}};
  const auto add = [&](const char* key, const auto& column) {
    if (!column.empty()) json[key] = column;
  };
  add("classes", samples.classes);
  add("labels", samples.labels);
  add("true_labels", samples.true_labels);
  add("indices", samples.indices);
  add("files", samples.files);
  write_sealed_json(folder / kSamplesFile, json);
}

std::optional<SampleList> read_samples(const std::filesystem::path& folder,
                                       std::uint64_t num_samples) {
  const std::filesystem::path path = folder / kSamplesFile;
  if (!std::filesystem::exists(path)) return std::nullopt;
  const std::string& source = path.native();
  const Json json = read_sealed_json(path, kSamplesFormat).json;
  SampleList samples;
  samples.labels = read_column<std::int64_t>(json, "labels", num_samples, source, read_whole);
  samples.true_labels =
      read_column<std::int64_t>(json, "true_labels", num_samples, source, read_whole);
  samples.indices = read_column<std::uint64_t>(json, "indices", num_samples, source, read_whole);
  samples.files = read_column<std::string>(json, "files", num_samples, source, read_name);
  if (json.contains("classes")) {
    const Json& names = array_member(json, "classes", source);
    samples.classes = read_column<std::string>(json, "classes", names.size(), source, read_name);
  }
  if (!samples.true_labels.empty() && samples.labels.empty()) {
    throw std::runtime_error(
        fmt::format("{}: true_labels must come with labels, got none", source));
  }
  return samples;
}

}  // namespace tamis::runs
