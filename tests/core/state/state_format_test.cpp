#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/former_name.h"
#include "paths.h"
#include "support/scratch_folder.h"
#include "support/simulated_run.h"
#include "tamis/pruner.h"

namespace tamis {
namespace {

// What a reader that knows nothing of tamis does.
TEST(StateFormat, IsReadableByAPlainSafetensorsReader) {
  Pruner pruner({.num_samples = 500, .num_epochs = 30, .score = Spec{"batch-loss"}, .seed = 11});
  test::simulate_epochs(pruner, 0, 2, 32);
  pruner.start_epoch(2);
  const std::vector<std::byte> bytes = pruner.serialize();
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  EXPECT_EQ((length + 8) % 4096, 0U);
  const auto* const text = reinterpret_cast<const char*>(bytes.data());
  const nlohmann::json header = nlohmann::json::parse(text + 8, text + 8 + length);
  EXPECT_EQ(header["__metadata__"]["format"], "tamis-pruner");
  EXPECT_EQ(header["__metadata__"]["epoch"], "2");
  EXPECT_EQ(header["scores"]["dtype"], "F32");
  EXPECT_EQ(header["scores"]["shape"], nlohmann::json({500}));

  const auto* const data = bytes.data() + 8 + length;
  std::vector<float> scores(500);
  std::memcpy(scores.data(), data + header["scores"]["data_offsets"][0].get<std::size_t>(),
              500 * sizeof(float));
  const std::vector<float> expected = pruner.scores();
  EXPECT_EQ(std::memcmp(scores.data(), expected.data(), 500 * sizeof(float)), 0);
  const auto* const kept = data + header["plan.kept"]["data_offsets"][0].get<std::size_t>();
  for (std::size_t i = 0; i < 500; ++i) {
    const bool bit = (std::to_integer<unsigned>(kept[i / 8]) >> (i % 8) & 1U) != 0;
    ASSERT_EQ(bit, pruner.plan()->selection().kept.test(i)) << i;
  }
  std::size_t end = 0;
  for (const auto& [name, tensor] : header.items()) {
    if (name != "__metadata__") end = std::max<std::size_t>(end, tensor["data_offsets"][1]);
  }
  EXPECT_EQ(8 + length + end, bytes.size()) << "the format allows no bytes after the last tensor";
}

// A state without what the product's name is in, and the data.
std::pair<nlohmann::json, std::vector<std::byte>> content_of(const std::vector<std::byte>& bytes) {
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const auto* const text = reinterpret_cast<const char*>(bytes.data());
  nlohmann::json header = nlohmann::json::parse(text + 8, text + 8 + length);
  nlohmann::json& metadata = header["__metadata__"];
  EXPECT_TRUE(detail::is_name(metadata.at("format").get<std::string>(), "tamis-pruner"));
  metadata.erase("format");
  for (const std::string_view name : {detail::kName, detail::kFormerName}) {
    metadata.erase(std::string(name) + "_crc32c");
  }
  return {header, {bytes.begin() + 8 + static_cast<std::ptrdiff_t>(length), bytes.end()}};
}

// A stored file of the former name: see tests/golden/README.md.
TEST(StateFormat, OneIsStillReadAndWritten) {
  const std::string path = std::string(TAMIS_GOLDEN_DIR) + "/state_format_1.safetensors";
  Pruner pruner = Pruner::from_file(path);
  EXPECT_EQ(pruner.options().seed, 42U);
  EXPECT_EQ(pruner.options().score->name, "batch-loss");
  EXPECT_EQ(pruner.num_observations(), 9U);
  EXPECT_EQ(pruner.num_skipped_observations(), 1U);
  EXPECT_EQ(pruner.position(), 16U);
  const std::vector<float> scores = pruner.scores();
  for (std::size_t i = 0; i < 90; ++i) {
    EXPECT_FLOAT_EQ(scores[i], 0.3F * 0.25F * static_cast<float>(i / 10)) << i;
  }
  for (std::size_t i = 90; i < 100; ++i) EXPECT_TRUE(std::isnan(scores[i])) << i;

  ASSERT_NE(pruner.plan(), nullptr);
  EXPECT_EQ(pruner.plan()->epoch(), 1U);
  std::string kept;
  for (std::size_t i = 0; i < 100; ++i) kept += pruner.plan()->selection().kept.test(i) ? '1' : '0';
  EXPECT_EQ(kept.substr(0, 40), "0000101010111101001000011001011001011111");
  EXPECT_EQ(kept.substr(40), std::string(60, '1'));
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(pruner.plan()->weight_of(i), i < 40 && kept[i] == '1' ? 2.0F : 1.0F) << i;
  }
  EXPECT_EQ(content_of(pruner.serialize()), content_of(test::read_bytes(path)));
}

}  // namespace
}  // namespace tamis
