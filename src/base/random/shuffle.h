// The set bits of a bitmap in uniformly random order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tamis/array.h"
#include "tamis/bitmap.h"

namespace tamis::detail {

// Positions of the `count` set bits of `kept`, every order equally likely. The order depends on
// (seed, epoch, kept) alone. Requires: count == kept.count() and kept.size() < 2^32.
Array<std::uint32_t> shuffled_positions(const Bitmap& kept, std::size_t count, std::uint64_t seed,
                                        std::uint64_t epoch);

// Shuffles items [starts[b], starts[b + 1]) of every bucket b by itself. The order depends on
// (seed, epoch, starts) alone.
void shuffle_buckets(std::uint32_t* items, std::span<const std::size_t> starts, std::uint64_t seed,
                     std::uint64_t epoch);

}  // namespace tamis::detail
