// Damaged, foreign and mismatching states: each is refused with its reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/crc32c.h"
#include "base/files/safetensors.h"
#include "support/state_victim.h"
#include "tamis/pruner.h"

namespace tamis {
namespace {

using test::Bytes;
using test::contains;
using test::make_run;
using test::message_of;
using test::options_of_run;
using test::Victim;

std::size_t header_size(const Bytes& state) {
  std::uint64_t length = 0;
  std::memcpy(&length, state.data(), sizeof length);
  return static_cast<std::size_t>(length) + sizeof length;
}

// Replaces text of the header, at the cost of the spaces at its end, and makes the checksum right.
Bytes edit_header(Bytes state, std::string_view from, std::string_view to) {
  std::string header(reinterpret_cast<const char*>(state.data()), header_size(state));
  const std::size_t at = header.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  const std::size_t size = header.size();
  header.replace(at, from.size(), to);
  header.resize(size, ' ');
  const std::string_view key = R"("tamis_crc32c":")";
  const std::size_t digits = header.find(key) + key.size();
  header.replace(digits, 8, "00000000");
  const std::uint32_t crc = detail::crc32c(std::as_bytes(std::span(header)));
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08x", crc);
  header.replace(digits, 8, text.data());
  std::memcpy(state.data(), header.data(), header.size());
  return state;
}

// A safetensors file with nothing of ours in it.
Bytes foreign_file(std::string header, std::size_t data_size) {
  const std::uint64_t length = header.size();
  Bytes file(sizeof length + header.size() + data_size);
  std::memcpy(file.data(), &length, sizeof length);
  std::memcpy(file.data() + sizeof length, header.data(), header.size());
  return file;
}

TEST(StateFaults, EveryByteOfTheHeaderIsChecked) {
  PrunerOptions options = options_of_run();
  options.num_samples = 5000;
  Bytes state = make_run(options).serialize();
  Victim victim(options);
  for (std::size_t at = 0; at < header_size(state); ++at) {
    const auto mask = static_cast<std::byte>(1U << (at % 8));
    for (const std::byte flip : {mask, std::byte{0x20}, std::byte{0xFF}}) {
      state[at] ^= flip;
      const std::string message = victim.refuse(state);
      ASSERT_TRUE(contains(message, "damaged") || contains(message, "truncated")) << "byte " << at;
      state[at] ^= flip;
    }
  }
}

TEST(StateFaults, TheDataAreCheckedAtThousandRandomPlaces) {
  Bytes state = make_run().serialize();
  Victim victim;
  std::mt19937_64 random(1);
  const std::size_t begin = header_size(state);
  for (int trial = 0; trial < 1000; ++trial) {
    const std::size_t at = begin + random() % (state.size() - begin);
    const auto mask = static_cast<std::byte>(1 + random() % 255);
    state[at] ^= mask;
    ASSERT_TRUE(contains(victim.refuse(state), "state: the data are damaged")) << at;
    state[at] ^= mask;
  }
}

TEST(StateFaults, DamagedDataAreNamedByTensorAndBlock) {
  const Bytes state = make_run().serialize();
  const std::size_t begin = header_size(state);
  const std::size_t scores = 40'000 * sizeof(float);
  const auto message_for_flip = [&](std::size_t at) {
    Bytes flipped = state;
    flipped[at] ^= std::byte{4};
    return Victim().refuse(flipped);
  };
  EXPECT_TRUE(contains(message_for_flip(begin), "damaged in scores: block 0, bytes [0, 65536)"));
  EXPECT_TRUE(contains(message_for_flip(begin + 65536), "scores: block 1, bytes [65536, 131072)"));
  EXPECT_TRUE(
      contains(message_for_flip(begin + scores), "scores or plan.kept or plan.rescaled: block 2"));
  EXPECT_TRUE(contains(message_for_flip(state.size() - 1), "the checksums themselves"));
}

TEST(StateFaults, TruncatedStatesAreRefused) {
  const Bytes state = make_run().serialize();
  Victim victim;
  EXPECT_TRUE(contains(victim.refuse({}), "empty"));
  for (std::size_t length = 512; length < state.size(); length += 512) {
    ASSERT_TRUE(contains(victim.refuse(std::span(state).first(length)), "truncated")) << length;
  }
  for (std::size_t missing = 1; missing <= 20; ++missing) {
    ASSERT_TRUE(
        contains(victim.refuse(std::span(state).first(state.size() - missing)), "truncated"));
    ASSERT_TRUE(contains(victim.refuse(std::span(state).first(missing)), "truncated")) << missing;
  }
}

TEST(StateFaults, BytesAfterTheEndAreRefused) {
  Bytes state = make_run().serialize();
  Victim victim;
  for (const std::size_t extra : {1U, 4U, 4096U, 100'000U}) {
    Bytes longer = state;
    longer.resize(state.size() + extra);
    EXPECT_TRUE(contains(victim.refuse(longer), std::to_string(extra) + " bytes too many"));
  }
}

TEST(StateFaults, NewerFormatsAreRefusedWithBothVersions) {
  const Bytes state =
      edit_header(make_run().serialize(), R"("format_version":"1")", R"("format_version":"2")");
  EXPECT_TRUE(contains(Victim().refuse(state),
                       "written by a newer tamis (format 2); this one reads up to 1"));
}

TEST(StateFaults, ANewerFormatIsNamedEvenIfItsTensorsAreUnknown) {
  Bytes state =
      edit_header(make_run().serialize(), R"("format_version":"1")", R"("format_version":"3")");
  state = edit_header(state, R"("dtype":"F32")", R"("dtype":"X99")");
  EXPECT_TRUE(contains(Victim().refuse(state), "newer tamis (format 3)"));
}

TEST(StateFaults, OtherOptionsAreNamedWithBothValues) {
  const Bytes state = make_run().serialize();
  const auto refusal = [&](auto change) {
    PrunerOptions options = options_of_run();
    change(options);
    return Victim(options).refuse(state);
  };
  EXPECT_TRUE(contains(refusal([](PrunerOptions& o) { o.num_samples = 40'001; }),
                       "num_samples is 40000 in the file, but 40001 in this run"));
  EXPECT_TRUE(contains(refusal([](PrunerOptions& o) { o.num_epochs = 21; }),
                       "num_epochs is 20 in the file, but 21 in this run"));
  EXPECT_TRUE(contains(refusal([](PrunerOptions& o) { o.seed = 6; }),
                       "seed is 5 in the file, but 6 in this run"));
  EXPECT_TRUE(contains(refusal([](PrunerOptions& o) { o.delta = 0.5; }),
                       "delta is 0.875 in the file, but 0.5 in this run"));
  EXPECT_TRUE(contains(refusal([](PrunerOptions& o) { o.score = Spec{"last-batch-loss"}; }),
                       "score is batch-loss in the file, but last-batch-loss in this run"));
  EXPECT_TRUE(contains(refusal([](PrunerOptions& o) { o.score->options["alpha"] = 0.75; }),
                       "score.alpha is 0.7 in the file, but 0.75 in this run"));
  EXPECT_TRUE(contains(refusal([](PrunerOptions& o) { o.policy = {"seta"}; }),
                       "policy is infobatch in the file, but seta in this run"));
  EXPECT_TRUE(contains(refusal([](PrunerOptions& o) { o.policy.options["prune_ratio"] = 0.25; }),
                       "policy.prune_ratio is 0.5 in the file, but 0.25 in this run"));
}

TEST(StateFaults, AnOptionThatOnlyTheFileHasIsNamed) {
  const Bytes state =
      edit_header(make_run().serialize(), R"("crc32c_of_crc32c")", R"("score.unheard_of")");
  EXPECT_TRUE(contains(Victim().refuse(state), "score.unheard_of is"));
}

TEST(StateFaults, ForeignFilesAreRefused) {
  Victim victim;
  EXPECT_TRUE(contains(victim.refuse(foreign_file(
                           R"({"weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8)),
                       "a safetensors file, but not written by tamis"));
  EXPECT_TRUE(contains(
      victim.refuse(foreign_file(R"({"a\u00e4\n":{"shape":[],"data_offsets":[0,2],"dtype":"BF16"},
                                            "__metadata__":{"format":"pt"}}   )",
                                 2)),
      "a safetensors file, but not written by tamis"));
  EXPECT_TRUE(contains(victim.refuse(Bytes(5000, std::byte{'x'})), "not a safetensors file"));
  EXPECT_TRUE(contains(victim.refuse(Bytes(5000, std::byte{0})), "not a safetensors file"));
  const Bytes other = edit_header(make_run().serialize(), "tamis-pruner", "tamis-plants");
  EXPECT_TRUE(
      contains(victim.refuse(other), "not the state of a pruner: its format is tamis-plants"));
}

TEST(StateFaults, HeadersThatAreNotTheirJsonAreRefused) {
  Victim victim;
  for (const char* header :
       {"",
        "{",
        "[]",
        "{}x",
        R"({"a"})",
        R"({"a":1})",
        R"({"a":{}})",
        "{,}",
        R"({"__metadata__":{"a":1}})",
        R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})",
        R"({"a":{"dtype":"U8","shape":[01],"data_offsets":[0,1]}})",
        R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})",
        R"({"a":{"dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,1]}})",
        R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})",
        R"({"a":{"dtype":"U8","shape":[1]}})",
        R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
        R"({"a\q":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
        R"({"a\u12":{}})",
        R"({"\ud800":{}})",
        "{\"a\n\":{}}",
        R"({"a)",
        R"({"a\)"}) {
    EXPECT_TRUE(contains(victim.refuse(foreign_file(header, 1)), "not a safetensors file"))
        << header;
  }
}

// Right checksums around wrong contents: what only a program could have written.
TEST(StateFaults, ContentsThatDoNotFitAreRefused) {
  const Bytes state = make_run().serialize();
  Victim victim;
  const auto refusal = [&](std::string_view from, std::string_view to) {
    return victim.refuse(edit_header(state, from, to));
  };
  EXPECT_TRUE(contains(refusal(R"("position":"1000")", R"("position":"40000")"),
                       "field position must be in [0, "));
  EXPECT_TRUE(contains(refusal(R"("position":"1000")", R"("position":"-1")"),
                       "field position must be a whole number, got -1"));
  EXPECT_TRUE(contains(refusal(R"("epoch":"1")", R"("epoch":"20")"),
                       "field epoch must be below 20, got 20"));
  EXPECT_TRUE(contains(refusal(R"("rescale":"2")", R"("rescale":"2x")"),
                       "field rescale must be a number, got 2x"));
  EXPECT_TRUE(contains(refusal(R"("num_observations")", R"("num_losses")"),
                       "field num_observations is missing"));
  EXPECT_TRUE(contains(refusal(R"("number.initial")", R"("number.first")"),
                       "field number.initial is missing"));
  EXPECT_TRUE(contains(refusal(R"("scores":)", R"("skores":)"), "tensor scores is missing"));
  EXPECT_TRUE(contains(refusal(R"("F32")", R"("U32")"), "tensor scores must be F32"));
  EXPECT_TRUE(contains(refusal(R"("F32")", R"("F64")"), "tensor scores has an impossible type"));
  EXPECT_TRUE(contains(refusal(R"("shape":[40000])", R"("shape":[20000])"),
                       "tensor scores has an impossible type, shape or place"));
  EXPECT_TRUE(contains(refusal(R"("shape":[40000])", R"("shape":[4294967296,4294967296])"),
                       "tensor scores has an impossible type, shape or place"));
  EXPECT_TRUE(contains(refusal(R"("crc32c":)", R"("last":)"), "the last tensor must be crc32c"));
}

TEST(StateFaults, BitsPastTheLastSampleAreRefused) {
  PrunerOptions options = options_of_run();
  options.num_samples = 5001;
  const Bytes state = make_run(options).serialize();
  detail::SafetensorsReader file("state", state);
  file.verify_data();
  std::vector<detail::Tensor> tensors(file.tensors().begin(), file.tensors().end());
  ASSERT_EQ(tensors[1].name, "plan.kept");
  Bytes kept(tensors[1].bytes.begin(), tensors[1].bytes.end());
  kept.back() |= std::byte{0x80};
  tensors[1].bytes = kept;
  // The first and the last entry are the writer's own.
  const detail::Metadata metadata(file.metadata().begin() + 1, file.metadata().end() - 1);
  const detail::SafetensorsWriter writer(metadata, tensors);
  Bytes edited(writer.size());
  writer.write([&](std::uint64_t offset, std::span<const std::byte> bytes) {
    std::copy(bytes.begin(), bytes.end(), edited.begin() + static_cast<std::ptrdiff_t>(offset));
  });
  ASSERT_EQ(edited.size(), state.size());
  EXPECT_TRUE(
      contains(Victim(options).refuse(edited), "tensor plan.kept has bits past the last sample"));
}

}  // namespace
}  // namespace tamis
