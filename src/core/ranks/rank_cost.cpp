#include "tamis/rank_cost.h"

#include <cmath>

#include "core/ranks/loss_log.h"
#include "core/ranks/run.h"

namespace tamis {

namespace {

// Scores, the order of the selected samples, and two bits per sample for the selection.
std::uint64_t memory_of(std::uint64_t num_samples, std::uint64_t num_selected,
                        std::uint64_t bytes_per_score) {
  return num_samples * bytes_per_score + num_selected * sizeof(std::uint32_t) + num_samples / 4;
}

}  // namespace

RankCost predict_replicated(const EpochShape& shape, std::uint64_t epoch) {
  const std::uint64_t own =
      detail::shared_size(shape.num_selected, shape.num_ranks, Remainder::pad);
  const std::uint64_t losses = detail::loss_log_bytes(own, shape.batch_size, shape.observed);
  RankCost cost{.memory = memory_of(shape.num_samples, shape.num_selected, shape.bytes_per_score)};
  if (shape.num_ranks == 1) return cost;
  cost.bytes_sent = losses + detail::plan_fields(epoch + 1, 0, 0).size();
  cost.bytes_received = (shape.num_ranks - 1) * cost.bytes_sent;
  return cost;
}

std::uint64_t sharded_memory(const EpochShape& shape) {
  const auto share = [&](std::uint64_t number) {
    return (number + shape.num_ranks - 1) / shape.num_ranks;
  };
  return memory_of(share(shape.num_samples), share(shape.num_selected), shape.bytes_per_score);
}

std::uint64_t sharded_growth(std::uint64_t num_samples, std::uint64_t num_fewer) {
  constexpr std::uint64_t kBytesPerRound = 32 * sizeof(std::int64_t);
  const double factor = static_cast<double>(num_samples) / static_cast<double>(num_fewer);
  return kBytesPerRound * static_cast<std::uint64_t>(std::ceil(std::log2(factor) / 2.0 / 5.0));
}

}  // namespace tamis
