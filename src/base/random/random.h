// Seeded random streams. The same (seed, epoch, purpose) gives the same numbers on every machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tamis::detail {

// What a stream is for, so that no two uses share their numbers.
enum class Purpose : std::uint64_t {
  selection = 1,
  exploration = 2,
  order = 3,
  order_retries = 4,
  buckets = 5,
  class_floor = 6,
  whole_batches = 7,
  batch_order = 8,
  label_noise = 9,
  class_sizes = 10,
  class_weights = 11,
  recording = 16,
  further_choices = 256  // and above: a policy's own
};

// The seed of what a rank draws for its part alone: parts that are alike must not draw alike.
inline std::uint64_t part_seed(std::uint64_t seed, std::uint64_t first_sample) {
  return seed ^ (first_sample * 0x9e3779b97f4a7c15U);
}

// Eight interleaved xoshiro256++ generators (Blackman and Vigna), seeded by splitmix64. Numbers are
// made a block at a time so that the compiler can use vector instructions.
class RandomStream {
 public:
  static constexpr std::size_t kBlock = 256;

  RandomStream(std::uint64_t seed, std::uint64_t epoch, Purpose purpose);

  std::uint64_t next() {
    if (used_ == kBlock) refill();
    return block_[used_++];
  }

  // Uniform in [0, bound), without bias (Lemire). Requires: bound > 0.
  std::uint64_t below(std::uint64_t bound) {
    unsigned __int128 product = static_cast<unsigned __int128>(next()) * bound;
    if (static_cast<std::uint64_t>(product) < bound) {
      const std::uint64_t threshold = (0 - bound) % bound;
      while (static_cast<std::uint64_t>(product) < threshold) {
        product = static_cast<unsigned __int128>(next()) * bound;
      }
    }
    return static_cast<std::uint64_t>(product >> 64U);
  }

  // The numbers that as many calls of next() would return.
  void take(std::span<std::uint64_t> numbers);

  // As if next() had been called `count` times, in a time that hardly depends on it.
  void skip(std::uint64_t count);

  // The next kBlock numbers at once, without those left over from the last block. The pointer is
  // valid until the next call of any function.
  const std::uint64_t* next_block() {
    refill();
    used_ = kBlock;
    return block_.data();
  }

  // How many blocks have been made so far, skipped ones included.
  std::uint64_t num_blocks() const { return num_blocks_; }

 private:
  void refill();
  void skip_steps(std::uint64_t count);

  static constexpr std::size_t kLanes = 8;
  alignas(64) std::array<std::array<std::uint64_t, kLanes>, 4> state_{};
  alignas(64) std::array<std::uint64_t, kBlock> block_{};
  std::size_t used_ = kBlock;
  std::uint64_t num_blocks_ = 0;
};

}  // namespace tamis::detail
