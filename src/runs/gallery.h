// gallery.json: pictures of the training samples that were hardest, easiest and most often
// forgotten. docs/run_folder.md has the format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runs/json.h"
#include "runs/run_files.h"

namespace tamis::runs {

// Beyond these a page would be too large to open.
inline constexpr std::uint64_t kMostPictures = 100;  // of one group
inline constexpr std::uint64_t kMostPixels = 256;    // on each side of a picture
inline constexpr std::size_t kMostPictureBytes = 100'000;

struct GallerySample {
  std::uint64_t sample = 0;  // its number in the run
  std::string place = {};    // its file, or its index in the data set
  std::string label = {};
  std::string true_label = {};     // where the label is known to be wrong
  std::string predicted = {};      // at the end of the run
  std::vector<float> scores = {};  // after each of the gallery's epochs, NaN before its first visit
  std::uint64_t forgotten = 0;     // how often it went from right to wrong between two visits
  std::vector<std::byte> picture = {};  // PNG
};

struct Gallery {
  std::string score = {};                  // what the scores are
  std::vector<std::uint64_t> epochs = {};  // after which they were taken
  std::uint64_t num_never_learned = 0;     // samples that were visited and never right
  std::uint64_t num_never_forgotten = 0;  // samples that were right once and never wrong after that
  // Numbers of samples, in order.
  std::vector<std::uint64_t> hardest = {};
  std::vector<std::uint64_t> easiest = {};
  std::vector<std::uint64_t> forgotten = {};
  std::vector<GallerySample> samples = {};  // all of these groups, each once
};

// Throws std::runtime_error.
void write_gallery(const std::filesystem::path& folder, const Gallery& gallery);

// The document, which has all that the page shows of it, each of its kind and size; null if the
// folder has none. Throws std::runtime_error with the file if it breaks the format, or names a
// sample beyond `num_samples`.
Json read_gallery(const std::filesystem::path& folder, std::uint64_t num_samples);

}  // namespace tamis::runs
