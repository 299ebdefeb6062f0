// samples.json: who the training samples of a run are, so that a number in a list leads back to a
// label and a file. docs/run_folder.md has the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runs/json.h"
#include "runs/run_files.h"

namespace tamis::runs {

// Of all training samples, in the order of their numbers in the run. What is not known is empty.
struct SampleList {
  std::vector<std::int64_t> labels = {};       // as the run is trained on
  std::vector<std::int64_t> true_labels = {};  // where labels were made wrong on purpose
  std::vector<std::string> classes = {};       // names, by label
  std::vector<std::uint64_t> indices = {};     // in the data set, where a run uses a part of it
  std::vector<std::string> files = {};

  // "Shirt", or the number of a class without a name.
  std::string class_name(std::int64_t label) const;
  // Where the sample is found: its file, or its index in the data set.
  std::string place(std::size_t sample) const;
  // True where it is known that the label is wrong.
  bool is_wrong(std::size_t sample) const {
    return !true_labels.empty() && true_labels[sample] != labels[sample];
  }
};

void write_samples(const std::filesystem::path& folder, const SampleList& samples);

// Empty if the folder has no such file. Throws std::runtime_error with the file if it breaks the
// format or is not about `num_samples` samples.
std::optional<SampleList> read_samples(const std::filesystem::path& folder,
                                       std::uint64_t num_samples);

}  // namespace tamis::runs
