#include "libtorch/handler_state.h"

#include <torch/torch.h>

#include <algorithm>

namespace tamis::libtorch::detail {

HandlerState::HandlerState(Pruner pruner)
    : pruner_(std::move(pruner)),
      book_(pruner_),
      watcher_(pruner_.scorer().norm_order()),
      warn_([](const std::string& text) { TORCH_WARN(text); }) {}

bool HandlerState::is_watched(const torch::Tensor& loss) const {
  const LossKind needed = pruner_.scorer().needs();
  if (needed == LossKind::output_gradients) return true;
  return watcher_.is_active() && (needed != LossKind::sample_losses || loss.dim() == 0);
}

bool HandlerState::is_over() const {
  const EpochPlan* const plan = pruner_.plan();
  if (plan == nullptr || is_chosen_) return false;
  const bool is_complete = pruner_.position() == plan->size();
  return is_complete || (book_.in_pass() && has_update_ && is_exhausted_);
}

void HandlerState::start_pass(const LoaderShape& shape) {
  // What a loaded state has kept back stays: this pass continues it.
  if (book_.in_pass()) close_pass();
  ++pass_;
  if (pruner_.plan() == nullptr) {
    pruner_.start_epoch(0);
  } else if (is_over()) {
    pruner_.start_epoch(pruner_.plan()->epoch() + 1);
  }
  book_.begin_pass(shape.booking);
  shape_ = shape;
  start_ = next_ = num_delivered_ = pruner_.position();
  num_asked_ = 0;
  has_update_ = is_exhausted_ = is_loaded_ = is_chosen_ = false;
  if (batch_length(next_) == 0) book_.finish_delivery();
}

void HandlerState::close_pass() {
  const bool was_open = book_.in_pass();
  watcher_.drop_pending();
  last_pass_ = book_.end_pass();
  if (was_open) {
    // A loop that is left early uses up its epoch; a walk over the data without training does not.
    pruner_.set_position(has_update_ ? pruner_.plan()->size() : start_);
    if (!has_update_) return;
  }
  const std::string warning = to_warning(last_pass_);
  if (warn_ && !warning.empty()) warn_(warning);
  const std::string complaint = watcher_.take_complaint();
  if (warn_ && !complaint.empty()) warn_(complaint);
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
  if (shape_.booking == Booking::in_order && !is_exhausted_) {
    ++num_asked_;
    book_.deliver(count);
    if (has_handed_out_all()) finish_delivery();
  }
  if (count == 0) return std::nullopt;
  std::vector<std::size_t> samples(count);
  for (std::size_t k = 0; k < count; ++k) {
    samples[k] = static_cast<std::size_t>(pruner_.plan()->sample(next_ + k));
  }
  next_ += count;
  return samples;
}

void HandlerState::deliver() {
  const std::size_t count = batch_length(num_delivered_);
  book_.deliver(count);
  num_delivered_ += count;
}

void HandlerState::finish_delivery() {
  is_exhausted_ = true;
  if (has_update_ || shape_.booking == Booking::in_order) book_.finish_delivery();
}

// Torch's loader asks for max_jobs batches when a pass begins (fewer if it gets nothing), and once
// more for every batch that it hands out, also when there is none left to draw.
bool HandlerState::has_handed_out_all() const {
  std::size_t num_batches = (pruner_.plan()->size() - start_) / shape_.batch_size;
  if (batch_length(start_ + num_batches * shape_.batch_size) > 0) ++num_batches;
  return num_asked_ >= std::min(shape_.max_jobs, num_batches + 1) + num_batches;
}

void HandlerState::note_update() {
  if (!has_update_ && is_exhausted_) book_.finish_delivery();
  has_update_ = true;
}

void HandlerState::set_epoch(std::uint64_t epoch) {
  if (!is_loaded_ || epoch != pruner_.plan()->epoch()) {
    end_pass();
    pruner_.start_epoch(epoch);
    pruner_.set_position(0);
    is_loaded_ = false;
  }
  is_chosen_ = true;
}

void HandlerState::save(const std::function<void(Pruner&)>& save_pruner) {
  book_.before_save();
  save_pruner(pruner_);
}

void HandlerState::load(const std::function<void(Pruner&)>& load_pruner) {
  load_pruner(pruner_);  // if it throws, the pass goes on
  book_.after_load();
  is_loaded_ = pruner_.plan() != nullptr;
  is_chosen_ = false;
  ++pass_;
}

}  // namespace tamis::libtorch::detail
