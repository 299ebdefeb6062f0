#include "runs/seal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <stdexcept>
#include <string>

#include "support/scratch_folder.h"

namespace tamis::runs {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const Json kDocument = {{"name", "zeros 00000000"}, {"values", {1, 2.5}}, {"more", {{"a", 1}}}};

TEST(Seal, IsTakenOffWhenTheDocumentIsRead) {
  EXPECT_EQ(parse_sealed_json(sealed_line(kDocument), "line"), kDocument);
  const test::ScratchFolder scratch;
  write_sealed_json(scratch / "file", kDocument);
  EXPECT_EQ(read_sealed_json(scratch / "file"), kDocument);
  EXPECT_EQ(read_json(scratch / "file").value("crc32c", "").size(), 8U);
}

TEST(Seal, MayBeLeftOut) {
  EXPECT_EQ(parse_sealed_json(kDocument.dump(), "line"), kDocument);
  EXPECT_EQ(parse_sealed_json("[1, 2]", "line"), Json({1, 2}));
}

// The figure is that of any other CRC-32C of the text with zeros for digits.
TEST(Seal, IsTheChecksumOfTheTextWithZeros) {
  EXPECT_EQ(sealed_line({{"epoch", 0}}), R"({"epoch":0,"crc32c":"13dbfcdf"})");
}

TEST(Seal, ShowsEveryChangedCharacter) {
  const std::string line = sealed_line(kDocument);
  const std::size_t member = line.find(R"("crc32c")");
  for (std::size_t at = 0; at < line.size(); ++at) {
    // Damage of the key itself leaves a document without a checksum, whose contents are whole.
    if (at > member && at <= member + 6) continue;
    std::string changed = line;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_THROW(parse_sealed_json(changed, "line"), std::runtime_error) << at << ' ' << changed;
  }
}

TEST(Seal, SaysWhatToDoAfterAChangeByHand) {
  std::string line = sealed_line(kDocument);
  line.replace(line.find("2.5"), 3, "3.5");
  EXPECT_THAT([&] { parse_sealed_json(line, "config.json"); },
              ThrowsMessage<std::runtime_error>(HasSubstr(
                  "config.json: does not match its checksum: it is damaged, or was changed by "
                  "hand; whoever changed it removes the member \"crc32c\"")));
  EXPECT_THAT([&] { parse_sealed_json(R"({"crc32c": 5})", "x"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("does not match its checksum")));
}

TEST(Json, TextThatIsNotUtf8IsRefusedInOneSentence) {
  EXPECT_THAT(
      [] {
        format_document({{"data_dir", "/data\xff"}});
      },
      ThrowsMessage<std::runtime_error>(HasSubstr("text of a JSON file must be UTF-8")));
}

TEST(Json, DeepDocumentsAreRefused) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_NO_THROW(parse_json(nested(200), "file"));
  EXPECT_THAT([&] { parse_json(nested(100'000), "file"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("must not be deeper than 200")));
  EXPECT_NO_THROW(parse_json("\"" + std::string(1000, '[') + "\"", "file"));
}

}  // namespace
}  // namespace tamis::runs
