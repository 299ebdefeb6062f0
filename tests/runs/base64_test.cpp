#include "runs/base64.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace tamis::runs {
namespace {

std::string encode(std::string_view text) { return to_base64(std::as_bytes(std::span(text))); }

std::string decode(std::string_view text) {
  const auto bytes = from_base64(text);
  if (!bytes) return "refused";
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

TEST(Base64, IsThatOfRfc4648) {
  EXPECT_EQ(encode(""), "");
  EXPECT_EQ(encode("f"), "Zg==");
  EXPECT_EQ(encode("fo"), "Zm8=");
  EXPECT_EQ(encode("foo"), "Zm9v");
  EXPECT_EQ(encode("foob"), "Zm9vYg==");
  EXPECT_EQ(encode("\xfb\xff\xfe"), "+//+");
}

TEST(Base64, GivesBackEveryByte) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  for (std::size_t size = 0; size <= all.size(); ++size) {
    EXPECT_EQ(decode(encode(all.substr(0, size))), all.substr(0, size)) << size;
  }
}

TEST(Base64, RefusesWhateverItDoesNotWrite) {
  for (const char* text : {"Zg", "Zg=", "Z===", "====", "Zm9v\n", "Zm 9", "Zm9\"", "Zm9-",
                           "Zg==Zg==", "Zh==", "Zm9="}) {
    EXPECT_EQ(decode(text), "refused") << text;
  }
}

}  // namespace
}  // namespace tamis::runs
