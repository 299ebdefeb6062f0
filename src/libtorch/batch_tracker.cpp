#include "libtorch/batch_tracker.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/check.h"

namespace tamis::libtorch::detail {

using tamis::detail::concat;

namespace {

constexpr const char* kPassBatch = "; pass the batch: update(loss, batch)";

[[noreturn]] void refuse(const std::string& reason) {
  throw std::invalid_argument(concat("Handler: update(loss) ", reason, kPassBatch));
}

}  // namespace

std::uint64_t BatchTracker::start_pass(std::span<const std::uint32_t> order, std::size_t position,
                                       std::optional<LoaderShape> shape) {
  const std::scoped_lock lock(mutex_);
  ++last_pass_;
  active_ = true;
  shape_ = shape;
  thread_ = std::this_thread::get_id();
  order_ = order;
  start_ = cursor_ = position_ = updated_position_ = position;
  num_total_ = num_prefetched_ = 0;
  if (shape_) {
    const std::size_t left = order.size() - position;
    num_total_ = left / shape_->batch_size;
    if (!shape_->drop_last && left % shape_->batch_size != 0) ++num_total_;
    if (shape_->workers > 0) num_prefetched_ = std::min(shape_->max_jobs, num_total_ + 1);
  }
  num_calls_ = num_ready_ = num_updated_ = first_ = 0;
  told_end_ = false;
  failed_.clear();
  look_ahead_.reset();
  batches_.clear();
  return last_pass_;
}

void BatchTracker::end_pass() {
  const std::scoped_lock lock(mutex_);
  if (!active_) return;
  active_ = false;
  if (is_under_way() && has_ended()) {
    for (Batch& batch : batches_) batch.passed = true;
  }
  if (is_under_way()) drop_finished();
}

std::uint64_t BatchTracker::pass() const {
  const std::scoped_lock lock(mutex_);
  return active_ ? last_pass_ : 0;
}

std::optional<std::vector<std::size_t>> BatchTracker::next(std::size_t batch_size) {
  const std::scoped_lock lock(mutex_);
  ++num_calls_;
  if (shape_) {
    check_shape(batch_size == shape_->batch_size, "batch_size");
    if (shape_->workers > 0 && num_calls_ > num_prefetched_) {
      const std::size_t handed_out = num_calls_ - num_prefetched_;
      check_shape(handed_out <= num_ready_ && handed_out + failed_.size() <= num_total_,
                  "max_jobs or workers");
    }
  }
  const std::size_t count = std::min(batch_size, order_.size() - cursor_);
  if (count == 0 || (shape_ && shape_->drop_last && count < batch_size)) {
    told_end_ = true;
    return std::nullopt;
  }
  const auto samples = order_.subspan(cursor_, count);
  batches_.push_back({.indices = {samples.begin(), samples.end()}, .end = cursor_ + count});
  cursor_ += count;
  return std::vector<std::size_t>(samples.begin(), samples.end());
}

std::shared_ptr<const BatchTicket> BatchTracker::start_batch(std::span<const SampleIndex> indices) {
  const std::scoped_lock lock(mutex_);
  if (!active_) return nullptr;
  // What is asked for and not yet made is among the newest.
  for (std::size_t i = batches_.size(); i-- > 0;) {
    Batch& batch = batches_[i];
    if (batch.stage == Stage::requested && batch.ticket.expired() &&
        std::equal(batch.indices.begin(), batch.indices.end(), indices.begin(), indices.end(),
                   [](std::uint32_t a, SampleIndex b) { return SampleIndex{a} == b; })) {
      if (shape_) {
        check_shape((shape_->workers > 0) != (std::this_thread::get_id() == thread_), "workers");
      }
      auto ticket = std::make_shared<const BatchTicket>(
          BatchTicket{.pass = last_pass_, .number = first_ + i});
      batch.ticket = ticket;
      return ticket;
    }
  }
  return nullptr;
}

void BatchTracker::finish_batch(const std::shared_ptr<const BatchTicket>& ticket) {
  const std::scoped_lock lock(mutex_);
  if (!active_ || ticket->pass != last_pass_) return;
  if (Batch* batch = find(ticket->number)) {
    batch->stage = Stage::ready;
    ++num_ready_;
  }
}

void BatchTracker::fail_batch(const BatchTicket& ticket) {
  const std::scoped_lock lock(mutex_);
  if (!active_ || ticket.pass != last_pass_) return;
  if (Batch* batch = find(ticket.number)) {
    batch->stage = Stage::failed;
    failed_.insert(std::upper_bound(failed_.begin(), failed_.end(), ticket.number), ticket.number);
  }
}

BatchTracker::Match BatchTracker::match() {
  const std::scoped_lock lock(mutex_);
  if (!active_) refuse("has no batch: the loader has not started a pass");
  if (!shape_) refuse("cannot tell its batch without the loader's options: sampler(options)");
  if (!shape_->ordered) refuse("cannot tell its batch: the loader does not enforce ordering");
  const std::size_t handed_out = num_handed_out();
  if (handed_out == 0) refuse("has no batch: none was handed out; is the data set wrapped?");

  std::size_t delivery = 0;
  if (look_ahead_) {
    delivery = handed_out - 1 - std::min(*look_ahead_, handed_out - 1);
  }
  // At the first update, and at the end when the loader hands out no more: the oldest one held.
  if (!look_ahead_ || all_handed_out()) {
    while (delivery + 1 < handed_out && !is_held(number_of(delivery))) ++delivery;
  }
  const std::size_t number = number_of(delivery);
  const Batch* batch = find(number);
  if (batch == nullptr || batch->num_updated > 0) {
    refuse(concat("was called again before the next batch, for batch ", number));
  }
  if (batch->ticket.expired()) {
    refuse(concat("came after its batch ", number, " was destroyed"));
  }
  if (!look_ahead_) look_ahead_ = handed_out - 1 - delivery;
  return {.number = number, .indices = batch->indices};
}

void BatchTracker::mark_updated(std::size_t number, std::size_t count, bool passes) {
  const std::scoped_lock lock(mutex_);
  Batch* batch = find(number);
  if (batch == nullptr) return;
  if (batch->num_updated == 0) ++num_updated_;
  batch->num_updated += count;
  if (passes) {
    for (std::size_t i = 0; first_ + i < number; ++i) batches_[i].passed = true;
  }
  pass_over_dropped();
  drop_finished();
  updated_position_ = position_;
}

void BatchTracker::mark_updated(std::span<const SampleIndex> indices) {
  const std::scoped_lock lock(mutex_);
  if (!active_ || indices.empty()) return;
  std::vector<SampleIndex> wanted(indices.begin(), indices.end());
  std::sort(wanted.begin(), wanted.end());
  std::size_t found = 0;
  for (std::size_t i = 0; i < batches_.size() && found < wanted.size(); ++i) {
    Batch& batch = batches_[i];
    const auto count = static_cast<std::size_t>(
        std::count_if(batch.indices.begin(), batch.indices.end(), [&](std::uint32_t sample) {
          return std::binary_search(wanted.begin(), wanted.end(), SampleIndex{sample});
        }));
    if (count == 0) continue;
    found += count;
    if (batch.num_updated == 0) ++num_updated_;
    batch.num_updated += count;
    // A loop without a wrapped data set takes its batches in order.
    if (num_ready_ == 0) {
      for (std::size_t j = 0; j < i; ++j) batches_[j].passed = true;
    }
  }
  pass_over_dropped();
  drop_finished();
  updated_position_ = position_;
}

std::size_t BatchTracker::position() {
  const std::scoped_lock lock(mutex_);
  settle();
  return position_;
}

std::size_t BatchTracker::resume_position() {
  const std::scoped_lock lock(mutex_);
  settle();
  return told_end_ && !(shape_ && shape_->workers > 0) ? position_ : updated_position_;
}

std::size_t BatchTracker::take_missed() {
  const std::scoped_lock lock(mutex_);
  settle();
  return std::exchange(num_missed_, 0);
}

BatchTracker::Batch* BatchTracker::find(std::size_t number) {
  if (number < first_ || number - first_ >= batches_.size()) return nullptr;
  return &batches_[number - first_];
}

bool BatchTracker::is_held(std::size_t number) {
  const Batch* batch = find(number);
  return batch != nullptr && batch->num_updated == 0 && !batch->ticket.expired();
}

std::size_t BatchTracker::num_handed_out() const {
  if (!shape_ || shape_->workers == 0) return num_ready_;
  const std::size_t calls = num_calls_ - std::min(num_calls_, num_prefetched_);
  return std::min(calls, num_total_ - failed_.size());
}

std::size_t BatchTracker::number_of(std::size_t delivery) const {
  for (const std::size_t failed : failed_) {
    if (failed > delivery) break;
    ++delivery;
  }
  return delivery;
}

bool BatchTracker::all_handed_out() const {
  return num_handed_out() + failed_.size() == num_total_;
}

// Whether the loop has been given every batch and asked for more. With workers the loader does not
// pass the last question on; then every batch is enough.
bool BatchTracker::has_ended() const {
  if (shape_ && shape_->workers > 0) return all_handed_out();
  const bool all_made = std::none_of(batches_.begin(), batches_.end(), [](const Batch& batch) {
    return batch.stage == Stage::requested;
  });
  return told_end_ && (all_made || num_ready_ == 0);
}

void BatchTracker::check_shape(bool holds, const char* what) const {
  if (!holds) {
    throw std::invalid_argument(concat("Sampler: ", what,
                                       " of the loader must be as in the options given to "
                                       "Handler::sampler, got another"));
  }
}

// Whether the epoch counts as begun; one without any batch does.
bool BatchTracker::is_under_way() const {
  return num_updated_ > 0 || start_ > 0 || (shape_ && num_total_ == 0);
}

// Batches that were handed out and are gone will get no update any more.
void BatchTracker::pass_over_dropped() {
  std::size_t end = first_ + batches_.size();
  if (shape_ && shape_->ordered) {
    const std::size_t handed_out = num_handed_out();
    end = handed_out == 0 ? first_ : std::min(end, number_of(handed_out - 1) + 1);
  }
  for (std::size_t number = first_; number < end; ++number) {
    Batch& batch = batches_[number - first_];
    if (batch.stage == Stage::ready && batch.ticket.expired()) batch.passed = true;
  }
}

// At the end of a pass the last batches may have been passed over without a later update to show
// it.
void BatchTracker::settle() {
  if (active_ && is_under_way() && has_ended()) {
    pass_over_dropped();
    drop_finished();
  }
}

void BatchTracker::drop_finished() {
  while (!batches_.empty()) {
    const Batch& batch = batches_.front();
    const bool failed = batch.stage == Stage::failed;
    if (!failed && !batch.passed && batch.num_updated < batch.indices.size()) break;
    if (!failed && batch.num_updated == 0) ++num_missed_;
    position_ = batch.end;
    batches_.pop_front();
    ++first_;
  }
  // What drop_last leaves over counts as done with the last batch.
  if (shape_ && first_ == num_total_) position_ = order_.size();
}

}  // namespace tamis::libtorch::detail
