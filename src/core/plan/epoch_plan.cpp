#include "tamis/epoch_plan.h"

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "base/random/shuffle.h"
#include "base/threads.h"
#include "core/plan/weight_groups.h"
#include "tamis/array.h"

namespace tamis {

struct EpochPlan::Shared {
  Array<std::uint32_t> make_order(std::size_t size) const {
    const detail::AllowThreads allow(threads);
    auto shuffled = detail::shuffled_positions(selection.kept, size, seed, epoch);
    if (homogeneous_batch_size == 0 || !detail::has_two_weights(selection)) return shuffled;
    detail::RandomStream random(seed, epoch, detail::Purpose::batch_order);
    return detail::group_by_weight(shuffled, selection.rescaled, homogeneous_batch_size, random);
  }

  Selection selection;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  bool pruning = false;
  std::size_t homogeneous_batch_size = 0;
  std::size_t threads = 1;  // that may make the order
  // Most of a plan's cost, and not needed to know its size or to save it.
  std::once_flag is_ordered = {};
  Array<std::uint32_t> order = {};
  std::atomic<const std::uint32_t*> samples = nullptr;  // of order, once it is made
};

namespace {

double mean_weight_with(const Selection& selection, std::size_t num_rescaled, std::size_t count) {
  if (num_rescaled == 0) return 1.0;
  const double share = static_cast<double>(num_rescaled) / static_cast<double>(count);
  return 1.0 + share * (static_cast<double>(selection.rescale) - 1.0);
}

}  // namespace

EpochPlan::EpochPlan(Selection selection, std::uint64_t seed, std::uint64_t epoch, bool pruning,
                     std::size_t homogeneous_batch_size)
    : shared_(new Shared{.selection = std::move(selection),
                         .seed = seed,
                         .epoch = epoch,
                         .pruning = pruning,
                         .homogeneous_batch_size = homogeneous_batch_size,
                         .threads = detail::allowed_threads()}),
      num_ordered_(shared_->selection.kept.count()),
      view_{.size = num_ordered_,
            .num_samples = shared_->selection.kept.size(),
            .num_selected = num_ordered_} {}

std::uint64_t EpochPlan::epoch() const { return shared_->epoch; }
bool EpochPlan::pruning() const { return shared_->pruning; }
const Selection& EpochPlan::selection() const { return shared_->selection; }

std::span<const std::uint32_t> EpochPlan::order() const {
  const std::uint32_t* samples = shared_->samples.load(std::memory_order_acquire);
  if (samples == nullptr) {
    std::call_once(shared_->is_ordered, [this] {
      shared_->order = shared_->make_order(num_ordered_);
      shared_->samples.store(shared_->order.data(), std::memory_order_release);
    });
    samples = shared_->order.data();
  }
  return {samples, num_ordered_};
}

void EpochPlan::check_range(std::size_t begin, std::size_t count) const {
  if (begin > size() || count > size() - begin) {
    throw std::out_of_range(detail::concat("EpochPlan: samples [", begin, ", ", begin + count,
                                           ") must be in a plan of ", size()));
  }
}

template <typename Use>
void EpochPlan::visit(std::size_t begin, std::size_t count, Use use) const {
  check_range(begin, count);
  const std::uint32_t* const samples = order().data();
  const std::size_t first = slot(begin);
  if (view_.stride == 1 && first + count <= num_ordered_) {
    for (std::size_t k = 0; k < count; ++k) use(k, samples[first + k]);
    return;
  }
  for (std::size_t k = 0; k < count; ++k) use(k, index(begin + k));
}

void EpochPlan::copy_to(std::size_t begin, std::span<SampleIndex> out) const {
  const auto first = static_cast<SampleIndex>(view_.first_sample);
  visit(begin, out.size(), [&](std::size_t k, std::size_t index) {
    out[k] = first + static_cast<SampleIndex>(index);
  });
}

std::size_t EpochPlan::num_batches(std::size_t batch_size, bool drop_last) const {
  detail::require(batch_size >= 1, "EpochPlan", "batch_size", "at least 1", batch_size);
  return (size() + (drop_last ? 0 : batch_size - 1)) / batch_size;
}

bool EpochPlan::is_rescaled(std::size_t index) const {
  const Bitmap& rescaled = shared_->selection.rescaled;
  return !rescaled.empty() && rescaled.test(index);
}

float EpochPlan::weight(std::size_t j) const {
  return is_rescaled(index(j)) ? shared_->selection.rescale : 1.0F;
}

double EpochPlan::mean_weight(std::size_t begin, std::size_t count) const {
  const Bitmap& rescaled = shared_->selection.rescaled;
  std::size_t num_rescaled = 0;
  if (rescaled.empty()) {
    check_range(begin, count);
  } else {
    visit(begin, count, [&](std::size_t, std::size_t index) {
      num_rescaled += static_cast<std::size_t>(rescaled.test(index));
    });
  }
  return mean_weight_with(shared_->selection, num_rescaled, count);
}

std::size_t EpochPlan::index_of(SampleIndex sample) const {
  const std::uint64_t first = view_.first_sample;
  const std::size_t size = shared_->selection.kept.size();
  const std::uint64_t index = static_cast<std::uint64_t>(sample) - first;
  if (index >= size) {
    throw std::out_of_range(detail::concat("EpochPlan: index must be in [", first, ", ",
                                           first + size, "), got ", sample));
  }
  return static_cast<std::size_t>(index);
}

float EpochPlan::weight_of(SampleIndex sample) const {
  return is_rescaled(index_of(sample)) ? shared_->selection.rescale : 1.0F;
}

double EpochPlan::mean_weight_of(std::span<const SampleIndex> samples) const {
  std::size_t num_rescaled = 0;
  for (const SampleIndex sample : samples) {
    num_rescaled += static_cast<std::size_t>(is_rescaled(index_of(sample)));
  }
  return mean_weight_with(shared_->selection, num_rescaled, samples.size());
}

EpochPlan EpochPlan::of_rank(std::size_t rank) const {
  EpochPlan plan = *this;
  plan.view_.offset = rank;
  return plan;
}

}  // namespace tamis
