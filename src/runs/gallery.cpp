#include "runs/gallery.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "runs/base64.h"
#include "runs/seal.h"

namespace tamis::runs {

namespace {

// Other programs may leave the checksum out.
constexpr SealedFormat kGalleryFormat = {
    .name = "tamis-gallery",
    .newest = 1,
    .first_sealed = 2,
    .cure = "whoever changed it removes the member \"crc32c\""};
constexpr std::array<const char*, 3> kGroups = {"hardest", "easiest", "forgotten"};
constexpr std::size_t kLongestText = 1000;
constexpr std::size_t kMostEpochs = 1000;

std::uint32_t big_endian(std::span<const std::byte> bytes) {
  std::uint32_t number = 0;
  for (const std::byte byte : bytes.first<4>()) {
    number = number << 8U | std::to_integer<std::uint32_t>(byte);
  }
  return number;
}

// Empty if the bytes are the chunks of a PNG file of a size that a page can show, first to last.
// What is in them is the browser's to decode.
std::string fault_of_png(std::span<const std::byte> bytes) {
  constexpr std::array<unsigned char, 8> kSignature = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  constexpr std::size_t kFrame = 12;  // length, name and checksum of a chunk
  const auto signature = std::as_bytes(std::span(kSignature));
  if (bytes.size() < signature.size() ||
      !std::equal(signature.begin(), signature.end(), bytes.begin())) {
    return "is no PNG file";
  }
  bytes = bytes.subspan(signature.size());
  std::string_view name;
  for (bool is_first = true; !bytes.empty(); is_first = false) {
    const bool is_whole = bytes.size() >= kFrame && big_endian(bytes) <= bytes.size() - kFrame;
    if (!is_whole) return "ends within a part of it";
    const std::size_t length = big_endian(bytes);
    name = {reinterpret_cast<const char*>(bytes.data()) + 4, 4};
    if (is_first) {
      if (name != "IHDR" || length != 13) return "does not begin with its size";
      const std::uint32_t width = big_endian(bytes.subspan(8));
      const std::uint32_t height = big_endian(bytes.subspan(12));
      if (width == 0 || height == 0 || width > kMostPixels || height > kMostPixels) {
        return fmt::format("has {} x {} pixels, but at most {} x {} are shown", width, height,
                           kMostPixels, kMostPixels);
      }
    }
    bytes = bytes.subspan(kFrame + length);
    if (name == "IEND" && !bytes.empty()) return "has something behind its end";
  }
  return name == "IEND" ? "" : "ends before its end";
}

void check_text(const Fields& fields, const char* key) {
  const std::string text = fields.text(key);
  if (text.size() > kLongestText) {
    refuse(fields.source(), key, fmt::format("a text of at most {} bytes", kLongestText), text);
  }
}

void check_picture(const Fields& fields) {
  const std::string text = fields.text("picture");
  const auto bytes = from_base64(text);
  if (!bytes || bytes->size() > kMostPictureBytes) {
    refuse(fields.source(), "picture",
           fmt::format("a PNG file of at most {} bytes in base64", kMostPictureBytes), text);
  }
  if (const std::string fault = fault_of_png(*bytes); !fault.empty()) {
    throw std::runtime_error(fmt::format("{}: picture {}", fields.source(), fault));
  }
}

void check_scores(const Fields& fields, std::size_t num_epochs) {
  const Json& scores = array_member(fields.json(), "scores", fields.source());
  float score = 0.0F;
  const bool are_numbers = std::all_of(scores.begin(), scores.end(), [&](const Json& value) {
    return get_float_or_null(value, score) && !std::isinf(score);
  });
  if (!are_numbers || scores.size() != num_epochs) {
    refuse(fields.source(), "scores",
           fmt::format("a finite number or null for each of the {} epochs", num_epochs), scores);
  }
}

void check_epochs(const Json& gallery, const std::string& source) {
  const Json& epochs = array_member(gallery, "epochs", source);
  std::uint64_t next = 0;
  for (const Json& value : epochs) {
    std::uint64_t epoch = 0;
    if (!get_whole(value, std::uint64_t{1} << 53U, epoch) || epoch < next) {
      refuse(source, "epochs", "whole numbers in ascending order", value);
    }
    next = epoch + 1;
  }
  if (epochs.size() > kMostEpochs) {
    refuse(source, "epochs", fmt::format("at most {}", kMostEpochs), epochs);
  }
}

// The numbers of the samples that the gallery has.
std::set<std::uint64_t> check_samples(const Json& gallery, std::uint64_t num_samples,
                                      const std::string& source) {
  std::set<std::uint64_t> numbers;
  const Json& samples = array_member(gallery, "samples", source);
  if (samples.size() > kGroups.size() * kMostPictures) {
    refuse(source, "samples", fmt::format("at most {}", kGroups.size() * kMostPictures), samples);
  }
  const std::size_t num_epochs = gallery["epochs"].size();
  for (const Json& sample : samples) {
    const Fields fields(sample, fmt::format("{}: samples[{}]", source, numbers.size()));
    const std::uint64_t number = fields.whole("sample");
    if (number >= num_samples || !numbers.insert(number).second) {
      refuse(fields.source(), "sample",
             fmt::format("another number below data.num_train of config.json ({})", num_samples),
             number);
    }
    check_text(fields, "place");
    for (const char* key : {"label", "true_label", "predicted"}) {
      if (fields.find(key) != nullptr) check_text(fields, key);
    }
    if (fields.find("forgotten") != nullptr) fields.whole("forgotten");
    check_scores(fields, num_epochs);
    check_picture(fields);
  }
  return numbers;
}

void check_groups(const Fields& groups, const std::set<std::uint64_t>& numbers) {
  for (const auto& [key, value] : groups.json().items()) {
    if (std::find(kGroups.begin(), kGroups.end(), key) == kGroups.end()) {
      refuse(groups.source(), "a name", "hardest, easiest or forgotten", key);
    }
    const Json& members = array_member(groups.json(), key.c_str(), groups.source());
    if (members.size() > kMostPictures) {
      refuse(groups.source(), key, fmt::format("at most {} samples", kMostPictures), members);
    }
    for (const Json& member : members) {
      std::uint64_t number = 0;
      if (!get_whole(member, std::uint64_t{1} << 53U, number) || !numbers.contains(number)) {
        refuse(groups.source(), key, "numbers of samples that the gallery has", member);
      }
    }
  }
}

Json to_json(const GallerySample& sample) {
  Json json = {{"sample", sample.sample}, {"place", sample.place}};
  const auto add = [&](const char* key, const std::string& text) {
    if (!text.empty()) json[key] = text;
  };
  add("label", sample.label);
  add("true_label", sample.true_label);
  add("predicted", sample.predicted);
  json["forgotten"] = sample.forgotten;
  json["scores"] = short_numbers(sample.scores, 4);  // more than a small curve shows
  json["picture"] = to_base64(sample.picture);
  return json;
}

}  // namespace

void write_gallery(const std::filesystem::path& folder, const Gallery& gallery) {
  Json samples = Json::array();
  for (const GallerySample& sample : gallery.samples) samples.push_back(to_json(sample));
  write_sealed_json(folder / kGalleryFile, {{"format", kGalleryFormat.name},
                                            {"format_version", kGalleryFormat.newest},
                                            {"score", gallery.score},
                                            {"epochs", gallery.epochs},
                                            {"num_never_learned", gallery.num_never_learned},
                                            {"num_never_forgotten", gallery.num_never_forgotten},
                                            {"groups",
                                             {{"hardest", gallery.hardest},
                                              {"easiest", gallery.easiest},
                                              {"forgotten", gallery.forgotten}}},
                                            {"samples", samples}});
}

Json read_gallery(const std::filesystem::path& folder, std::uint64_t num_samples) {
  const std::filesystem::path path = folder / kGalleryFile;
  if (!std::filesystem::exists(path)) return nullptr;
  const std::string& source = path.native();
  Json gallery = read_sealed_json(path, kGalleryFormat).json;
  const Fields fields(gallery, source);
  check_text(fields, "score");
  for (const char* key : {"num_never_learned", "num_never_forgotten"}) {
    if (fields.find(key) != nullptr) fields.whole(key);
  }
  check_epochs(gallery, source);
  check_groups(fields.object("groups"), check_samples(gallery, num_samples, source));
  return gallery;
}

}  // namespace tamis::runs
