#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <ctime>
#include <stdexcept>
#include <string>
#include <utility>

#include "runs/json.h"
#include "support/memory_limit.h"

namespace tamis::runs {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(JsonCost, DeepDocumentsAreRefused) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_NO_THROW(parse_json(nested(200), "file"));
  EXPECT_THAT([&] { parse_json(nested(100'000), "file"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("must not be deeper than 200")));
  EXPECT_NO_THROW(parse_json("\"" + std::string(1000, '[') + "\"", "file"));
}

// Each member of an object is looked for among those before it.
TEST(JsonCost, ObjectsOfManyMembersAreRefusedAtOnce) {
  const auto object = [](std::size_t count) {
    std::string text = "{";
    for (std::size_t i = 0; i < count; ++i) {
      text += (i == 0 ? "\"key " : ",\"key ") + std::to_string(i) + R"(": "{:[")";
    }
    return text + "}";
  };
  EXPECT_EQ(parse_json(object(10'000), "file").size(), 10'000U);
  EXPECT_NO_THROW(parse_json("[" + object(6'000) + "," + object(6'000) + "]", "file"));
  const std::string many = object(120'000);
  const std::clock_t start = std::clock();  // of the processor: others may be using it too
  for (const std::string& text : {many, "[{\"a\": " + many + "}]"}) {
    EXPECT_THAT([&] { parse_json(text, "file"); },
                ThrowsMessage<std::runtime_error>(
                    HasSubstr("file: JSON objects must have at most 10000 members, got more")));
  }
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 2.0);
}

// Parsing what does not fit would end the program. (Sanitizers need more address space than any
// limit.)
#ifndef TAMIS_SANITIZED
TEST(JsonCost, TextsThatTakeMoreMemoryThanThereIsAreRefused) {
  const auto list = [](const std::string& entry, std::size_t count) {
    std::string text = "[" + entry;
    text.reserve(count * (entry.size() + 1) + 1);
    for (std::size_t i = 1; i < count; ++i) text += "," + entry;
    return text + "]";
  };
  constexpr std::size_t kCount = (std::size_t{1} << 18U) + 1;
  for (const std::string entry : {"1", "\"\"", "\"sixteen letters.\"", "[]", "[1]", "{}",
                                  "{\"a\":1}", "{\"sixteen letters.\":[\"\"]}"}) {
    std::string text = list(entry, kCount);
    // Where it is not refused, it is read.
    std::size_t num_refused = 0;
    for (rlim_t megabytes = 4; megabytes < 1000; megabytes *= 2) {
      std::string copy = text;
      const test::MemoryLimit limit(megabytes << 20U);
      try {
        EXPECT_EQ(parse_json(std::move(copy), "file").size(), kCount);
      } catch (const std::runtime_error& error) {
        EXPECT_THAT(error.what(), HasSubstr("file needs about"));
        ++num_refused;
      }
    }
    EXPECT_GT(num_refused, 0U) << entry;
    EXPECT_LT(num_refused, 8U) << entry;
  }
}
#endif

}  // namespace
}  // namespace tamis::runs
