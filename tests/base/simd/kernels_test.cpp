// Every kernel gives the same result bit for bit with every instruction set that the processor has,
// and the result that a plain loop gives.
#include "base/simd/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace tamis::detail {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class KernelsOf : public testing::TestWithParam<InstructionSet> {
 protected:
  KernelsOf() : use_(GetParam()) {}

  std::mt19937_64 random_{7};

 private:
  UseInstructionSet use_;
};

INSTANTIATE_TEST_SUITE_P(InstructionSets, KernelsOf, testing::ValuesIn(available_sets()),
                         [](const auto& test) { return std::string(name_of(test.param)); });

// Sizes around every width that a kernel handles at a time.
const std::vector<std::size_t> kSizes = {0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 1000, 1024, 4133};

// Ordinary scores with unscored, equal, negative and extreme ones among them.
std::vector<float> make_scores(std::size_t size, std::mt19937_64& random) {
  const std::vector<float> special = {kNan,    0.0F,    -0.0F,    1.0F,      -1.0F,     1e-40F,
                                      -1e-40F, 3.4e38F, -3.4e38F, kInfinity, -kInfinity};
  std::vector<float> scores(size);
  std::gamma_distribution<float> gamma(2.0F, 1.0F);
  for (float& score : scores) {
    score = random() % 8 == 0 ? special[random() % special.size()] : gamma(random);
  }
  return scores;
}

std::vector<std::uint64_t> make_words(std::size_t size, std::mt19937_64& random) {
  std::vector<std::uint64_t> words(size);
  for (std::uint64_t& word : words) {
    word = random();
    if (random() % 4 == 0) word &= random() & random() & random();
    if (random() % 8 == 0) word = random() % 2 == 0 ? 0 : ~std::uint64_t{0};
  }
  return words;
}

std::vector<std::uint32_t> positions_of(const std::vector<std::uint64_t>& words) {
  std::vector<std::uint32_t> positions;
  for (std::uint32_t i = 0; i < words.size() * 64; ++i) {
    if (((words[i / 64] >> (i % 64)) & 1U) != 0) positions.push_back(i);
  }
  return positions;
}

TEST_P(KernelsOf, RandomNumbersAreThoseOfEightXoshiroGenerators) {
  alignas(64) std::array<std::uint64_t, 32> state;
  for (std::uint64_t& word : state) word = random_();
  auto expected_state = state;
  alignas(64) std::array<std::uint64_t, 256> numbers;
  kernels().make_random(state.data(), numbers.data(), numbers.size());
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    std::uint64_t* const lane = &expected_state[k % 8];
    std::uint64_t &a = lane[0], &b = lane[8], &c = lane[16], &d = lane[24];
    EXPECT_EQ(numbers[k], std::rotl(a + d, 23) + a) << k;
    const std::uint64_t shifted = b << 17U;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = std::rotl(d, 45);
  }
  EXPECT_EQ(state, expected_state);
}

TEST_P(KernelsOf, OffsetsAreTheHighHalvesOfTheProducts) {
  alignas(64) std::array<std::uint64_t, 256> numbers;
  alignas(64) std::array<std::uint32_t, 512> offsets;
  for (const std::uint32_t bound : {513U, 13'000U, 700'000U, 0x7fffffffU, 0xffffffffU}) {
    for (std::uint64_t& number : numbers) number = random_();
    bool is_biased = false;
    const bool is_suspicious = kernels().make_offsets(numbers.data(), bound, offsets.data());
    for (std::uint32_t step = 0; step < 512; ++step) {
      const std::uint32_t half = step / 256;
      const std::uint32_t k = step % 256;
      const std::uint64_t product = ((numbers[k] >> (32 * half)) & 0xffffffffU) * (bound - step);
      EXPECT_EQ(offsets[2 * k + half], product >> 32U) << bound << " " << step;
      is_biased = is_biased || (product & 0xffffffffU) < bound - step;
    }
    EXPECT_TRUE(is_suspicious || !is_biased) << bound;
  }
}

TEST_P(KernelsOf, OneBiasedOffsetAnywhereIsNoticed) {
  alignas(64) std::array<std::uint64_t, 256> numbers;
  alignas(64) std::array<std::uint32_t, 512> offsets;
  constexpr std::uint64_t kUnsuspicious = 0x0040000100400001U;
  for (std::uint32_t step = 0; step < 512; ++step) {
    numbers.fill(kUnsuspicious);
    ASSERT_FALSE(kernels().make_offsets(numbers.data(), 1000, offsets.data()));
    // 0 times anything has a low half of 0.
    numbers[step % 256] &= step < 256 ? 0xffffffff00000000U : 0xffffffffU;
    EXPECT_TRUE(kernels().make_offsets(numbers.data(), 1000, offsets.data())) << step;
  }
}

TEST_P(KernelsOf, PositionsAreThoseOfTheSetBits) {
  for (const std::size_t size : kSizes) {
    const auto words = make_words(size, random_);
    const auto expected = positions_of(words);
    // One more element shows whether it writes past the end.
    std::vector<std::uint32_t> positions(expected.size() + 1, 12345);
    std::uint32_t* const end = positions.data() + expected.size();
    EXPECT_EQ(kernels().list_positions(words.data(), 0, size, positions.data(), end), end);
    EXPECT_EQ(positions.back(), 12345U);
    positions.pop_back();
    EXPECT_EQ(positions, expected) << size;
    EXPECT_EQ(kernels().count_ones(words.data(), size), expected.size()) << size;
  }
}

TEST_P(KernelsOf, ComparisonsAreThoseOfTheLanguage) {
  for (const std::size_t num_words : {1U, 2U, 17U}) {
    const auto scores = make_scores(num_words * 64, random_);
    for (const float low : {-kInfinity, -0.0F, 1.0F}) {
      for (const float high : {0.0F, 1.0F, 2.0F, kInfinity}) {
        std::vector<std::uint64_t> words(num_words, 12345);
        kernels().compare(scores.data(), num_words, low, high, words.data());
        for (std::size_t i = 0; i < scores.size(); ++i) {
          EXPECT_EQ(((words[i / 64] >> (i % 64)) & 1U) != 0, low <= scores[i] && scores[i] <= high)
              << scores[i] << " in " << low << ", " << high;
        }
      }
    }
  }
}

TEST_P(KernelsOf, SumsOfLanesAreAddedInOrder) {
  for (const std::size_t size : {0U, 16U, 48U, 1024U, 1040U, 5120U}) {
    auto scores = make_scores(size + 1, random_);
    std::replace_if(
        scores.begin(), scores.end(), [](float score) { return std::isinf(score); }, 5.0F);
    std::array<double, 16> sums;
    for (double& sum : sums) sum = std::ldexp(static_cast<double>(random_()), -60);
    std::array<double, 16> expected = sums;
    std::size_t num_numbers = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const float score = scores[i + 1];
      if (std::isnan(score)) continue;
      expected[i % 16] += double{score};
      ++num_numbers;
    }
    // Not aligned.
    EXPECT_EQ(kernels().add_scores(scores.data() + 1, size, sums.data()), num_numbers) << size;
    EXPECT_EQ(sums, expected) << size;
  }
}

TEST_P(KernelsOf, AddsSquaresInThirtyTwoSumsAlsoWhileItScales) {
  std::normal_distribution<float> normal(0.0F, 1.0F);
  for (const std::size_t size : {0U, 32U, 64U, 992U}) {
    std::vector<float> values(size + 1);
    for (float& value : values) value = normal(random_);
    std::array<float, 32> sums{1.0F, 2.0F};
    std::array<float, 32> expected = sums;
    std::array<float, 32> sums_of_scaled = sums;
    std::vector<float> scaled(size + 1);
    std::vector<float> expected_scaled(size + 1);
    for (std::size_t i = 0; i < size; ++i) {
      expected[i % 32] += values[i + 1] * values[i + 1];
      expected_scaled[i + 1] = values[i + 1] * 1.3F;
    }
    kernels().add_squares(values.data() + 1, size, sums.data());  // not aligned
    EXPECT_EQ(sums, expected) << size;
    kernels().scale(values.data() + 1, size, 1.3F, scaled.data() + 1, sums_of_scaled.data());
    EXPECT_EQ(sums_of_scaled, expected) << size;
    EXPECT_EQ(scaled, expected_scaled) << size;
  }
}

TEST_P(KernelsOf, AddsMagnitudesInThirtyTwoSums) {
  std::normal_distribution<float> normal(0.0F, 1.0F);
  for (const std::size_t size : {0U, 32U, 64U, 992U}) {
    std::vector<float> values(size + 1);
    for (float& value : values) value = normal(random_);
    std::array<float, 32> sums{1.0F, 2.0F};
    std::array<float, 32> expected = sums;
    for (std::size_t i = 0; i < size; ++i) expected[i % 32] += std::abs(values[i + 1]);
    kernels().add_magnitudes(values.data() + 1, size, sums.data());  // not aligned
    EXPECT_EQ(sums, expected) << size;
  }
}

TEST_P(KernelsOf, PicksTheScoresOfTheSetBits) {
  for (const std::size_t num_words : {0U, 1U, 2U, 16U}) {
    const auto scores = make_scores(num_words * 64, random_);
    const auto words = make_words(num_words, random_);
    const auto positions = positions_of(words);
    std::vector<float> picked(num_words * 64 + 8);
    ASSERT_EQ(kernels().pick(scores.data(), words.data(), num_words, picked.data()),
              positions.size());
    for (std::size_t i = 0; i < positions.size(); ++i) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(picked[i]),
                std::bit_cast<std::uint32_t>(scores[positions[i]]));
    }
  }
}

TEST_P(KernelsOf, CellsAndSectionsFollowFromTheKeys) {
  for (const std::size_t size : kSizes) {
    const auto scores = make_scores(size, random_);
    const RegionGrid grid{.origin = key_of(0.01F), .region_bits = 18, .num_regions = 512};
    std::vector<std::uint32_t> regions(513);
    std::uint32_t cell = 0;
    for (std::uint32_t& region : regions) {
      const auto log2_size = static_cast<std::uint32_t>(random_() % 19);
      region = cell * 32 + log2_size;
      cell += 1U << (18 - log2_size);
    }
    std::vector<std::uint32_t> cells(size);
    std::vector<std::uint32_t> offsets(size);
    kernels().find_cells(scores.data(), size, grid, regions.data(), cells.data(), offsets.data());
    std::vector<ScoreKey> keys(size);
    std::vector<std::uint32_t> sections(size);
    kernels().find_sections(scores.data(), size, key_of(0.5F), 12, 700, keys.data(),
                            sections.data());
    for (std::size_t i = 0; i < size; ++i) {
      const auto key = static_cast<std::uint32_t>(key_of(scores[i]));
      const std::uint32_t place = key - static_cast<std::uint32_t>(grid.origin);
      const std::uint32_t region = regions[std::min(place >> 18U, 512U)];
      EXPECT_EQ(cells[i], region / 32 + (place % (1U << 18U) >> (region % 32)));
      EXPECT_EQ(offsets[i], place % (1U << (region % 32)));
      EXPECT_EQ(keys[i], key_of(scores[i]));
      EXPECT_EQ(sections[i],
                std::min((key - static_cast<std::uint32_t>(key_of(0.5F))) >> 12U, 700U));
    }
  }
}

TEST(InstructionSets, TheBestIsTheLastAndPortableIsAlwaysThere) {
  const auto sets = available_sets();
  EXPECT_EQ(sets.front(), InstructionSet::portable);
  EXPECT_TRUE(std::is_sorted(sets.begin(), sets.end()));
}

}  // namespace
}  // namespace tamis::detail
