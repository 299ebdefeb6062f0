#include "tamis/loss_book.h"

#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/check.h"

namespace tamis {

namespace {

using detail::concat;

constexpr std::uint64_t kAttachmentVersion = 1;

constexpr std::string_view kCure =
    "say which batch the loss belongs to: update(loss, batch), or give the indices of its samples";

// Arrays one after the other, each behind its length.
template <typename T>
void write(const std::vector<T>& values, std::vector<std::byte>& out) {
  const auto size = static_cast<std::uint64_t>(values.size());
  const auto length = std::as_bytes(std::span(&size, 1));
  const auto bytes = std::as_bytes(std::span(values));
  out.insert(out.end(), length.begin(), length.end());
  out.insert(out.end(), bytes.begin(), bytes.end());
}

[[noreturn]] void fail_damaged() {
  throw std::runtime_error("LossBook: the losses that this state has kept back are damaged");
}

template <typename T>
std::vector<T> read(std::span<const std::byte>& bytes) {
  std::uint64_t size = 0;
  if (bytes.size() < sizeof size) fail_damaged();
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes = bytes.subspan(sizeof size);
  if (size > bytes.size() / sizeof(T)) fail_damaged();
  std::vector<T> values(static_cast<std::size_t>(size));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  bytes = bytes.subspan(values.size() * sizeof(T));
  return values;
}

}  // namespace

std::string to_warning(const PassSummary& summary) {
  const auto numbers = [&] {
    return concat("epoch ", summary.epoch, ": ", summary.num_updates, " updates for ",
                  summary.num_batches, " batches");
  };
  if (summary.dropped && summary.num_updates != summary.num_batches) {
    return concat(numbers(),
                  ", so which loss belongs to which batch is not known and none of them "
                  "was used; call update once for every batch, or ",
                  kCure);
  }
  if (summary.dropped) {
    return concat(numbers(),
                  ", but not in turn, so which loss belongs to which batch is not known "
                  "and none of them was used; ",
                  kCure);
  }
  if (summary.num_missed > 0) {
    return concat("epoch ", summary.epoch, ": ", summary.num_missed, " of ", summary.num_batches,
                  " batches had no update; their samples keep their scores");
  }
  return {};
}

const EpochPlan& LossBook::running_plan() const {
  const EpochPlan* const plan = pruner_->plan();
  if (plan == nullptr) throw std::logic_error("LossBook: no epoch is running; start one first");
  return *plan;
}

void LossBook::begin_pass(Booking booking) {
  if (pass_.is_open) throw std::logic_error("LossBook: a pass is open; end it before the next one");
  const EpochPlan& plan = running_plan();
  const bool continues = pass_.num_updates > 0;
  if (continues && (pass_.epoch != plan.epoch() || booking != Booking::in_order)) {
    throw std::logic_error(
        concat("LossBook: the state was saved in epoch ", pass_.epoch,
               ", in a pass whose updates are counted in order; continue it with such a loader"));
  }
  pass_.is_open = true;
  pass_.booking = booking;
  pass_.epoch = plan.epoch();
}

void LossBook::deliver(std::size_t count) {
  if (!pass_.is_open) throw std::logic_error("LossBook: no pass is open; begin one before a batch");
  auto& batches = pass_.batches;
  const std::size_t begin = batches.empty() ? pruner_->position() : batches.back().end();
  const std::size_t size = running_plan().size();
  if (begin > size || count > size - begin) {
    throw std::out_of_range(
        concat("LossBook: samples [", begin, ", ", begin + count, ") must be in a plan of ", size));
  }
  if (!batches.empty() && pass_.num_missing == batches.size()) pass_.fetches_ahead = true;
  batches.push_back({.begin = begin, .count = count});
  pass_.is_updated.push_back(false);
  ++pass_.num_missing;
  ++pass_.num_since_update;
}

bool LossBook::is_complete() const {
  return pass_.is_finished && (pass_.booking == Booking::by_delivery || pass_.num_missing == 0);
}

void LossBook::finish_delivery() {
  if (!pass_.is_open) return;
  pass_.is_finished = true;
  if (is_complete()) pruner_->set_position(running_plan().size());
}

std::size_t LossBook::next_number() const {
  if (!pass_.is_open || pass_.batches.empty()) {
    throw std::logic_error(concat("update: no batch has been delivered; ", kCure));
  }
  if (pass_.booking == Booking::in_order) return pass_.num_updates;
  if (pass_.fetches_ahead) {
    throw std::logic_error(
        concat("update: two batches were delivered before the first update of the pass, and a loop "
               "that fetches ahead cannot be told from one that skips a batch; ",
               kCure));
  }
  return pass_.batches.size() - 1;
}

PlannedBatch LossBook::next_batch() {
  try {
    const std::size_t number = next_number();
    if (number < pass_.batches.size()) return pass_.batches[number];
    throw std::logic_error(concat("update: call ", number + 1, " of a pass that has had ", number,
                                  " batches; ", kCure));
  } catch (const std::logic_error&) {
    pass_.is_broken = pass_.is_open;  // even if the caller catches the error
    throw;
  }
}

void LossBook::mark_updated(std::size_t number) {
  if (!pass_.is_updated[number]) {
    pass_.is_updated[number] = true;
    --pass_.num_missing;
  }
  const std::size_t end = is_complete() ? running_plan().size() : pass_.batches[number].end();
  if (end > pruner_->position()) pruner_->set_position(end);
}

void LossBook::finish_update() {
  // A loader draws one batch for each that it hands out, until there is none left to draw.
  const std::size_t least = pass_.is_finished ? 0 : 1;
  const std::size_t num_drawn = std::exchange(pass_.num_since_update, 0);
  if (pass_.has_lag && (num_drawn < least || num_drawn > 1)) pass_.is_broken = true;
  pass_.has_lag = true;
  mark_updated(next_number());
  ++pass_.num_updates;
}

PlannedBatch LossBook::update(double mean_loss) {
  const PlannedBatch batch = next_batch();
  if (pass_.booking == Booking::in_order) {
    pruner_->check_observation(batch.count, LossKind::mean_loss);
    pass_.num_losses.push_back(0);
    pass_.means.push_back(mean_loss);
  } else {
    pruner_->observe(batch.begin, batch.count, mean_loss);
  }
  finish_update();
  return batch;
}

PlannedBatch LossBook::update(std::span<const float> losses) {
  const PlannedBatch batch = next_batch();
  if (losses.size() != batch.count) {
    throw std::invalid_argument(concat("update: the batch has ", batch.count,
                                       " samples, so there must be as many losses, got ",
                                       losses.size()));
  }
  if (pass_.booking == Booking::in_order) {
    pass_.num_losses.push_back(static_cast<std::uint32_t>(losses.size()));
    pass_.losses.insert(pass_.losses.end(), losses.begin(), losses.end());
  } else {
    pruner_->observe(batch.begin, losses);
  }
  finish_update();
  return batch;
}

bool LossBook::holds(std::size_t number, SampleIndex id) const {
  if (pass_.is_updated[number]) return false;
  const EpochPlan& plan = running_plan();
  const PlannedBatch& batch = pass_.batches[number];
  for (std::size_t j = batch.begin; j < batch.end(); ++j) {
    if (plan.sample(j) == id) return true;
  }
  return false;
}

// Batches come in the order of delivery but for a few, so the one after the last is tried first.
void LossBook::mark_updated_by(SampleIndex id) {
  const std::size_t size = pass_.batches.size();
  if (!pass_.is_open || pass_.num_missing == 0) return;
  for (std::size_t k = 0; k < size; ++k) {
    const std::size_t number = (pass_.expected + k) % size;
    if (!holds(number, id)) continue;
    mark_updated(number);
    pass_.expected = number + 1;
    return;
  }
}

bool LossBook::update(std::span<const SampleIndex> ids, double mean_loss) {
  const bool applied = pruner_->observe(ids, mean_loss);
  mark_updated_by(ids.front());
  return applied;
}

bool LossBook::update(std::span<const SampleIndex> ids, std::span<const float> losses) {
  const bool applied = pruner_->observe(ids, losses);
  mark_updated_by(ids.front());
  return applied;
}

void LossBook::observe_kept_back() {
  std::span<const double> means = pass_.means;
  std::span<const float> losses = pass_.losses;
  for (std::size_t k = 0; k < pass_.num_updates; ++k) {
    const PlannedBatch& batch = pass_.batches[k];
    const std::size_t count = pass_.num_losses[k];
    if (count == 0) {
      pruner_->observe(batch.begin, batch.count, means.front());
      means = means.subspan(1);
    } else {
      pruner_->observe(batch.begin, losses.first(count));
      losses = losses.subspan(count);
    }
  }
}

PassSummary LossBook::end_pass() {
  if (!pass_.is_open && pass_.num_updates == 0) return {};
  PassSummary summary{.epoch = pass_.epoch,
                      .num_batches = pass_.batches.size(),
                      .num_updates = pass_.num_updates,
                      .num_missed = pass_.num_missing};
  // A loop that is left early has not missed the batch with which it was left.
  if (!pass_.is_finished && !pass_.is_updated.empty() && !pass_.is_updated.back()) {
    --summary.num_missed;
  }
  if (pass_.booking == Booking::in_order && (pass_.num_updates > 0 || pass_.is_broken)) {
    summary.out_of_order = pass_.is_broken;
    summary.dropped = pass_.is_broken || pass_.num_updates != pass_.batches.size();
    if (!summary.dropped) observe_kept_back();
  }
  if (pass_.is_finished) pruner_->set_position(running_plan().size());
  pass_ = {};
  return summary;
}

void LossBook::before_save() {
  std::vector<std::byte> bytes;
  const bool keeps = pass_.booking == Booking::in_order && pass_.num_updates > 0;
  if (keeps) {
    std::vector<std::uint64_t> head = {kAttachmentVersion, pass_.epoch, pass_.batches[0].begin,
                                       static_cast<std::uint64_t>(pass_.is_broken)};
    std::vector<std::uint32_t> counts;
    for (std::size_t k = 0; k < pass_.num_updates; ++k) {
      counts.push_back(static_cast<std::uint32_t>(pass_.batches[k].count));
    }
    write(head, bytes);
    write(counts, bytes);
    write(pass_.num_losses, bytes);
    write(pass_.means, bytes);
    write(pass_.losses, bytes);
  }
  pruner_->set_attachment(std::move(bytes));
}

void LossBook::after_load() {
  Pass pass;
  std::span<const std::byte> bytes = pruner_->attachment();
  if (!bytes.empty()) {
    const auto head = read<std::uint64_t>(bytes);
    if (head.size() != 4 || head[0] != kAttachmentVersion) fail_damaged();
    const auto counts = read<std::uint32_t>(bytes);
    pass.num_losses = read<std::uint32_t>(bytes);
    pass.means = read<double>(bytes);
    pass.losses = read<float>(bytes);
    pass.booking = Booking::in_order;
    pass.epoch = head[1];
    pass.is_broken = head[3] != 0;
    pass.num_updates = counts.size();
    std::uint64_t begin = head[2];
    std::uint64_t num_losses = 0;
    std::size_t num_means = 0;
    if (pass.num_losses.size() != counts.size()) fail_damaged();
    for (std::size_t k = 0; k < counts.size(); ++k) {
      if (pass.num_losses[k] != 0 && pass.num_losses[k] != counts[k]) fail_damaged();
      num_means += pass.num_losses[k] == 0 ? 1 : 0;
      num_losses += pass.num_losses[k];
      pass.batches.push_back({.begin = static_cast<std::size_t>(begin), .count = counts[k]});
      pass.is_updated.push_back(true);
      begin += counts[k];
    }
    const EpochPlan* const plan = pruner_->plan();
    if (num_means != pass.means.size() || num_losses != pass.losses.size() || plan == nullptr ||
        plan->epoch() != pass.epoch || begin > plan->size()) {
      fail_damaged();
    }
  }
  pass_ = std::move(pass);
}

}  // namespace tamis
