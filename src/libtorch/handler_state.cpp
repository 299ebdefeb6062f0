#include "libtorch/handler_state.h"

#include <torch/torch.h>

#include <algorithm>
#include <stdexcept>

namespace tamis::libtorch::detail {

HandlerState::HandlerState(Pruner pruner)
    : pruner_(std::move(pruner)),
      book_(pruner_),
      warn_([](const std::string& text) { TORCH_WARN(text); }) {}

bool HandlerState::is_complete() const {
  const EpochPlan* const plan = pruner_.plan();
  return plan != nullptr && pruner_.position() == plan->size();
}

void HandlerState::start_pass(const LoaderShape& shape) {
  // What a loaded state has kept back stays: this pass continues it.
  if (book_.in_pass()) close_pass();
  ++pass_;
  if (pruner_.plan() == nullptr) {
    pruner_.start_epoch(0);
  } else if (is_complete()) {
    pruner_.start_epoch(pruner_.plan()->epoch() + 1);
  }
  book_.begin_pass(shape.booking);
  shape_ = shape;
  start_ = next_ = num_delivered_ = pruner_.position();
  has_update_ = is_exhausted_ = false;
  if (batch_length(next_) == 0) book_.finish_delivery();
}

void HandlerState::close_pass() {
  const bool was_open = book_.in_pass();
  last_pass_ = book_.end_pass();
  // A walk over the data without training does not use up the epoch.
  if (was_open && !has_update_ && start_ < num_delivered_) return pruner_.set_position(start_);
  const std::string warning = to_warning(last_pass_);
  if (warn_ && !warning.empty()) warn_(warning);
}

void HandlerState::end_pass() {
  ++pass_;
  close_pass();
}

std::size_t HandlerState::batch_length(std::size_t position) const {
  const std::size_t left = pruner_.plan()->size() - position;
  return shape_.drop_last && left < shape_.batch_size ? 0 : std::min(left, shape_.batch_size);
}

std::optional<std::vector<std::size_t>> HandlerState::take_batch() {
  const std::size_t count = batch_length(next_);
  if (count == 0) return std::nullopt;
  std::vector<std::size_t> samples(count);
  for (std::size_t k = 0; k < count; ++k) {
    samples[k] = static_cast<std::size_t>(pruner_.plan()->sample(next_ + k));
  }
  next_ += count;
  if (shape_.booking == Booking::in_order) deliver();
  return samples;
}

void HandlerState::deliver() {
  const std::size_t count = batch_length(num_delivered_);
  book_.deliver(count);
  num_delivered_ += count;
  // By delivery, the loop may still be left before the last batch is trained on.
  if (shape_.booking == Booking::in_order && batch_length(num_delivered_) == 0) finish_delivery();
}

void HandlerState::finish_delivery() {
  is_exhausted_ = true;
  if (has_update_ || shape_.booking == Booking::in_order) book_.finish_delivery();
}

void HandlerState::settle() {
  if (!has_update_ && is_exhausted_) book_.finish_delivery();
  has_update_ = true;
  if (shape_.booking == Booking::in_order && book_.in_pass() && is_complete()) close_pass();
}

void HandlerState::set_epoch(std::uint64_t epoch) {
  end_pass();
  pruner_.start_epoch(epoch);
  if (is_complete()) pruner_.set_position(0);
}

void HandlerState::save(const std::function<void(Pruner&)>& save_pruner) {
  book_.before_save();
  save_pruner(pruner_);
}

void HandlerState::load(const std::function<void(Pruner&)>& load_pruner) {
  load_pruner(pruner_);  // if it throws, the pass goes on
  book_.after_load();
  ++pass_;
}

}  // namespace tamis::libtorch::detail
