// Kernels that are the same source for every instruction set. Each version includes this inside its
// own namespace, after it has turned on its instructions, with
//   kRandomBytes           the width of its registers
//   add_four(sum, floats)  sum += the floats as doubles
//   ones(word)             the number of bits that are 1
//   ones_of_byte(byte)     the same of a number below 256
// Nothing here may call functions of the standard library: the linker could keep a copy of them
// with instructions that not every processor has. Vectors that may lie anywhere are copied by
// __builtin_memcpy: through a pointer to a vector type of less alignment Clang stores as if it were
// aligned.

// One step of xoshiro256++ in every lane.
using RandomLanes = std::uint64_t __attribute__((vector_size(kRandomBytes), may_alias));
struct Generators {
  RandomLanes a, b, c, d;

  RandomLanes next() {
    const RandomLanes sum = a + d;
    const RandomLanes result = ((sum << 23U) | (sum >> 41U)) + a;
    const RandomLanes shifted = b << 17U;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = (d << 45U) | (d >> 19U);
    return result;
  }
};

void make_random(std::uint64_t* state, std::uint64_t* out, std::size_t count) {
  constexpr std::size_t kParts = 64 / kRandomBytes;
  auto* words = reinterpret_cast<RandomLanes*>(state);
  Generators parts[kParts];
  for (std::size_t p = 0; p < kParts; ++p) {
    parts[p] = {words[p], words[kParts + p], words[2 * kParts + p], words[3 * kParts + p]};
  }
  auto* results = reinterpret_cast<RandomLanes*>(out);
  for (std::size_t i = 0; i < count / 8; ++i) {
    for (std::size_t p = 0; p < kParts; ++p) results[i * kParts + p] = parts[p].next();
  }
  for (std::size_t p = 0; p < kParts; ++p) {
    words[p] = parts[p].a;
    words[kParts + p] = parts[p].b;
    words[2 * kParts + p] = parts[p].c;
    words[3 * kParts + p] = parts[p].d;
  }
}

// Eight elements at a time by a table of the positions in a byte; near the end one by one.
std::uint32_t* list_positions(const std::uint64_t* words, std::size_t begin_word,
                              std::size_t end_word, std::uint32_t* out, const std::uint32_t* end) {
  using Eight = std::uint32_t __attribute__((vector_size(32)));
  std::size_t w = begin_word;
  for (; w < end_word && end - out >= 64; ++w) {
    std::uint64_t bits = words[w];
    auto base = static_cast<std::uint32_t>(w * 64);
    for (int byte = 0; byte < 8; ++byte, bits >>= 8U, base += 8) {
      const auto& positions = kBytePositions.table[bits & 255U];
      Eight eight;
      __builtin_memcpy(&eight, &positions, sizeof eight);
      eight += base;
      __builtin_memcpy(out, &eight, sizeof eight);
      out += ones_of_byte(bits & 255U);
    }
  }
  for (; w < end_word; ++w) {
    for (std::uint64_t bits = words[w]; bits != 0; bits &= bits - 1) {
      *out++ =
          static_cast<std::uint32_t>(w * 64) + static_cast<std::uint32_t>(__builtin_ctzll(bits));
    }
  }
  return out;
}

std::size_t count_ones(const std::uint64_t* words, std::size_t num_words) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < num_words; ++i) count += ones(words[i]);
  return count;
}

// The numbers of a lane are added in the order of the scores. One that is NaN makes its sum NaN;
// then the block is added again with zeros instead, which is slower.
std::size_t add_scores(const float* scores, std::size_t count, double* sums) {
  using FourInts = std::int32_t __attribute__((vector_size(16)));
  constexpr std::size_t kBlock = 1024;
  constexpr std::size_t kFours = 4;
  FourDoubles sum[kFours];
  __builtin_memcpy(sum, sums, sizeof sum);
  std::size_t num_numbers = 0;
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t end = count - begin < kBlock ? count : begin + kBlock;
    FourDoubles before[kFours];
    __builtin_memcpy(before, sum, sizeof sum);
    for (std::size_t i = begin; i < end; i += 4 * kFours) {
      for (std::size_t f = 0; f < kFours; ++f) {
        FourFloats score;
        __builtin_memcpy(&score, scores + i + 4 * f, sizeof score);
        add_four(sum[f], score);
      }
    }
    num_numbers += end - begin;
    const FourDoubles all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    const double any = (all[0] + all[1]) + (all[2] + all[3]);
    if (any == any) continue;  // NOLINT(misc-redundant-expression)
    __builtin_memcpy(sum, before, sizeof sum);
    FourInts num_nan{};
    for (std::size_t i = begin; i < end; i += 4 * kFours) {
      for (std::size_t f = 0; f < kFours; ++f) {
        FourFloats score;
        __builtin_memcpy(&score, scores + i + 4 * f, sizeof score);
        const FourInts is_number = score == score;  // NOLINT(misc-redundant-expression)
        num_nan += 1 + is_number;
        add_four(sum[f], (FourFloats)((FourInts)score & is_number));
      }
    }
    num_numbers -= static_cast<std::size_t>(num_nan[0] + num_nan[1] + num_nan[2] + num_nan[3]);
  }
  __builtin_memcpy(sums, sum, sizeof sum);
  return num_numbers;
}

using EightFloats = float __attribute__((vector_size(32)));
using EightInts = std::int32_t __attribute__((vector_size(32)));
constexpr std::size_t kEights = 4;
constexpr std::int32_t kWithoutSign = 0x7FFFFFFF;

void add_squares(const float* values, std::size_t count, float* sums) {
  EightFloats sum[kEights];
  __builtin_memcpy(sum, sums, sizeof sum);
  for (std::size_t i = 0; i < count; i += 8 * kEights) {
    for (std::size_t e = 0; e < kEights; ++e) {
      EightFloats eight;
      __builtin_memcpy(&eight, values + i + 8 * e, sizeof eight);
      sum[e] += eight * eight;
    }
  }
  __builtin_memcpy(sums, sum, sizeof sum);
}

void add_magnitudes(const float* values, std::size_t count, float* sums) {
  EightFloats sum[kEights];
  __builtin_memcpy(sum, sums, sizeof sum);
  for (std::size_t i = 0; i < count; i += 8 * kEights) {
    for (std::size_t e = 0; e < kEights; ++e) {
      EightFloats eight;
      __builtin_memcpy(&eight, values + i + 8 * e, sizeof eight);
      sum[e] += (EightFloats)((EightInts)eight & kWithoutSign);
    }
  }
  __builtin_memcpy(sums, sum, sizeof sum);
}

void scale(const float* values, std::size_t count, float factor, float* to, float* sums) {
  EightFloats sum[kEights];
  __builtin_memcpy(sum, sums, sizeof sum);
  for (std::size_t i = 0; i < count; i += 8 * kEights) {
    for (std::size_t e = 0; e < kEights; ++e) {
      EightFloats eight;
      __builtin_memcpy(&eight, values + i + 8 * e, sizeof eight);
      sum[e] += eight * eight;
      eight *= factor;
      __builtin_memcpy(to + i + 8 * e, &eight, sizeof eight);
    }
  }
  __builtin_memcpy(sums, sum, sizeof sum);
}

// Short loops over small arrays, which the compiler vectorises.
void find_cells(const float* scores, std::size_t count, const RegionGrid& grid,
                const std::uint32_t* regions, std::uint32_t* cells, std::uint32_t* offsets) {
  const RegionGrid g = grid;
  const std::uint32_t in_region = (1U << g.region_bits) - 1;
  constexpr std::size_t kStep = 64;
  for (std::size_t begin = 0; begin < count; begin += kStep) {
    const std::size_t n = count - begin < kStep ? count - begin : kStep;
    std::uint32_t places[kStep];
    std::uint32_t found[kStep];
    for (std::size_t i = 0; i < n; ++i) {
      places[i] = static_cast<std::uint32_t>(key_of(scores[begin + i])) -
                  static_cast<std::uint32_t>(g.origin);
      const std::uint32_t region = places[i] >> g.region_bits;
      found[i] = region < g.num_regions ? region : g.num_regions;
    }
    for (std::size_t i = 0; i < n; ++i) found[i] = regions[found[i]];
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t log2_size = found[i] & 31U;
      cells[begin + i] = (found[i] >> 5U) + ((places[i] & in_region) >> log2_size);
      offsets[begin + i] = places[i] & ((1U << log2_size) - 1);
    }
  }
}

void find_sections(const float* scores, std::size_t count, ScoreKey first, unsigned shift,
                   std::uint32_t last, ScoreKey* keys, std::uint32_t* sections) {
  for (std::size_t i = 0; i < count; ++i) {
    keys[i] = key_of(scores[i]);
    const std::uint32_t section =
        (static_cast<std::uint32_t>(keys[i]) - static_cast<std::uint32_t>(first)) >> shift;
    sections[i] = section < last ? section : last;
  }
}
