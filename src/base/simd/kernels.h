// The loops that take most of a plan's time, each written once per instruction set. All versions
// give the same results bit for bit; the best one that the processor has is picked at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/score_key.h"

namespace tamis::detail {

enum class InstructionSet { portable, avx2, avx512 };

struct RegionGrid {
  ScoreKey origin = 0;
  unsigned region_bits = 0;
  std::uint32_t num_regions = 0;
};

struct Kernels {
  // The next `count` numbers of eight xoshiro256++ generators, whose four words of all lanes are in
  // `state` one after the other. Both arrays are aligned to 64; count is a multiple of 8.
  void (*make_random)(std::uint64_t* state, std::uint64_t* out, std::size_t count);

  // For 512 steps of a Fisher-Yates shuffle, the low half of random[k] is for step k, the high half
  // for step 256 + k. Step s has the range bound - s; offsets[2 * k + half] becomes the high half
  // of 32 random bits times the range, uniform unless the low half falls into a small zone
  // (Lemire). Returns whether that may be so for some step. Both arrays are aligned to 64; bound in
  // (512, 2^32).
  bool (*make_offsets)(const std::uint64_t* random, std::uint32_t bound, std::uint32_t* offsets);

  // Writes the positions of all set bits in order; word w holds positions 64 * w and up. Stays
  // before `end`, which leaves room for all of them. Returns the end of what it wrote.
  std::uint32_t* (*list_positions)(const std::uint64_t* words, std::size_t begin_word,
                                   std::size_t end_word, std::uint32_t* out,
                                   const std::uint32_t* end);

  std::size_t (*count_ones)(const std::uint64_t* words, std::size_t num_words);

  // Bit i of the words: low <= scores[i] && scores[i] <= high.
  void (*compare)(const float* scores, std::size_t num_words, float low, float high,
                  std::uint64_t* words);

  // Adds scores[i] to sums[i % 16], those that are numbers, and returns how many these are. `count`
  // is a multiple of 16.
  std::size_t (*add_scores)(const float* scores, std::size_t count, double* sums);

  // Adds the square of values[i] to sums[i % 32]. `count` is a multiple of 32.
  void (*add_squares)(const float* values, std::size_t count, float* sums);
  // The same with the magnitude of values[i].
  void (*add_magnitudes)(const float* values, std::size_t count, float* sums);
  // As add_squares, and to[i] becomes values[i] * factor.
  void (*scale)(const float* values, std::size_t count, float factor, float* to, float* sums);

  // Copies the scores whose bits are set, 64 per word, and may write 8 more. Returns how many.
  std::size_t (*pick)(const float* scores, const std::uint64_t* words, std::size_t num_words,
                      float* out);

  // Cell of each score and its offset in the cell, in keys. A score's place is its key less the
  // grid's origin; the first bits of the place name its region, or the last one if it lies beyond;
  // regions[r] is 32 * the first cell of the region + log2 of the size of its cells.
  void (*find_cells)(const float* scores, std::size_t count, const RegionGrid& grid,
                     const std::uint32_t* regions, std::uint32_t* cells, std::uint32_t* offsets);

  // Key of each score and its section: (key - first) >> shift, at most `last`.
  void (*find_sections)(const float* scores, std::size_t count, ScoreKey first, unsigned shift,
                        std::uint32_t last, ScoreKey* keys, std::uint32_t* sections);
};

// The kernels of the best set that the processor has, or of the one that the environment variable
// TAMIS_INSTRUCTION_SET names (for tests and to narrow down an error).
// Throws std::invalid_argument if the processor does not have it.
const Kernels& kernels();

std::string_view name_of(InstructionSet set);

// All that this processor has, the best last.
std::vector<InstructionSet> available_sets();

// For tests: kernels() are those of another set as long as it lives.
class UseInstructionSet {
 public:
  explicit UseInstructionSet(InstructionSet set);
  ~UseInstructionSet();
  UseInstructionSet(const UseInstructionSet&) = delete;
  UseInstructionSet& operator=(const UseInstructionSet&) = delete;

 private:
  const Kernels* previous_;
};

}  // namespace tamis::detail
