#include "runs/seal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>

#include "support/scratch_folder.h"

namespace tamis::runs {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const Json kDocument = {{"name", "zeros 00000000"}, {"values", {1, 2.5}}, {"more", {{"a", 1}}}};

// What the messages end with.
constexpr const char* kCure = "whoever changed it writes the checksum anew";
constexpr SealedFormat kFormat = {
    .name = "tamis-test", .newest = 3, .first_sealed = 2, .cure = kCure};

Json parsed(std::string text) { return parse_sealed_json(std::move(text), "line", kCure).json; }

Json document_of_version(std::uint64_t version) {
  Json document = {{"format", kFormat.name}, {"format_version", version}};
  document.update(kDocument);
  return document;
}

TEST(Seal, IsTakenOffWhenTheDocumentIsRead) {
  EXPECT_EQ(parsed(sealed_line(kDocument)), kDocument);
  const test::ScratchFolder scratch;
  write_sealed_json(scratch / "file", document_of_version(3));
  const auto [json, version] = read_sealed_json(scratch / "file", kFormat);
  EXPECT_EQ(json, document_of_version(3));
  EXPECT_EQ(version, 3U);
  EXPECT_EQ(read_json(scratch / "file").value("crc32c", "").size(), 8U);
}

TEST(Seal, MayBeLeftOutInVersionsThatDidNotHaveIt) {
  EXPECT_FALSE(parse_sealed_json(kDocument.dump(), "line", kCure).is_sealed);
  EXPECT_EQ(parsed(kDocument.dump()), kDocument);
  EXPECT_EQ(parsed("[1, 2]"), Json({1, 2}));
  const test::ScratchFolder scratch;
  write_json(scratch / "file", document_of_version(1));
  EXPECT_EQ(read_sealed_json(scratch / "file", kFormat).version, 1U);
  for (const std::uint64_t version : {2, 3}) {
    write_json(scratch / "file", document_of_version(version));
    EXPECT_THAT([&] { read_sealed_json(scratch / "file", kFormat); },
                ThrowsMessage<std::runtime_error>(
                    HasSubstr(std::string("file: has no checksum: it is damaged, or was changed by "
                                          "hand; ") +
                              kCure)));
  }
}

// The figure is that of any other CRC-32C of the text with zeros for digits.
TEST(Seal, IsTheChecksumOfTheTextWithZeros) {
  EXPECT_EQ(sealed_line({{"epoch", 0}}), R"({"epoch":0,"crc32c":"13dbfcdf"})");
}

// Its own name and the version of the format included.
TEST(Seal, ShowsEveryChangedCharacter) {
  const test::ScratchFolder scratch;
  write_sealed_json(scratch / "file", document_of_version(3));
  const std::string text = read_text(scratch / "file");
  const std::size_t last = text.rfind('}');
  for (std::size_t at = 0; at <= last; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = text;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      std::ofstream(scratch / "file") << changed;
      EXPECT_THROW(read_sealed_json(scratch / "file", kFormat), std::runtime_error)
          << at << ' ' << changed;
    }
  }
}

TEST(Seal, SaysWhatToDoAfterAChangeByHand) {
  std::string line = sealed_line(kDocument);
  line.replace(line.find("2.5"), 3, "3.5");
  EXPECT_THAT([&] { parsed(line); },
              ThrowsMessage<std::runtime_error>(
                  HasSubstr(std::string("line: does not match its checksum: it is damaged, or was "
                                        "changed by hand; ") +
                            kCure)));
  EXPECT_THAT([&] { parsed(R"({"crc32c": 5})"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("does not match its checksum")));
}

TEST(Json, TextThatIsNotUtf8IsRefusedInOneSentence) {
  EXPECT_THAT(
      [] {
        format_document({{"data_dir", "/data\xff"}});
      },
      ThrowsMessage<std::runtime_error>(HasSubstr("text of a JSON file must be UTF-8")));
}

}  // namespace
}  // namespace tamis::runs
