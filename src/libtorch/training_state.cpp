#include "libtorch/training_state.h"

#include <torch/torch.h>

#include <stdexcept>

#include "base/check.h"

namespace tamis::libtorch::detail {

using tamis::detail::concat;

namespace {

void check_loss(const torch::Tensor& loss, std::size_t num_samples) {
  if (!loss.defined() || !loss.is_floating_point()) {
    throw std::invalid_argument(
        concat("Handler: loss must be a floating-point tensor, got ",
               loss.defined() ? c10::toString(loss.scalar_type()) : "an undefined one"));
  }
  if (loss.dim() > 1 || (loss.dim() == 1 && loss.size(0) != static_cast<int64_t>(num_samples))) {
    std::ostringstream shape;
    shape << loss.sizes();
    throw std::invalid_argument(
        concat("Handler: loss must be a scalar or have one value for each of "
               "the batch's ",
               num_samples, " samples, got shape ", shape.str()));
  }
}

// mean(l_i * w_i). Half-precision losses are summed in float, as torch's own losses do.
torch::Tensor weighted_mean(const torch::Tensor& losses, const std::vector<float>& weights) {
  const bool half =
      losses.scalar_type() == torch::kHalf || losses.scalar_type() == torch::kBFloat16;
  const auto type = half ? torch::kFloat : losses.scalar_type();
  const torch::Tensor factors = torch::tensor(weights).to(losses.device(), type);
  return (losses.to(type) * factors).mean().to(losses.scalar_type());
}

}  // namespace

std::uint64_t TrainingState::start_pass(std::optional<LoaderShape> shape) {
  end_pass();
  const EpochPlan* plan = pruner_.plan();
  if (plan == nullptr) {
    plan = &pruner_.start_epoch(0);
  } else if (is_complete()) {
    plan = &pruner_.start_epoch(plan->epoch() + 1);
  }
  return tracker_.start_pass(plan->order(), pruner_.position(), shape);
}

void TrainingState::save(const std::function<void(const Pruner&)>& save_pruner) {
  settle();
  if (tracker_.pass() == 0) return save_pruner(pruner_);
  struct Position {
    Pruner& pruner;
    std::size_t before = pruner.position();
    ~Position() { pruner.set_position(before); }
  };
  const Position restored{pruner_};
  pruner_.set_position(tracker_.resume_position());
  save_pruner(pruner_);
}

void TrainingState::load(const std::function<void(Pruner&)>& load_pruner) {
  load_pruner(pruner_);  // if it throws, the pass goes on
  tracker_.end_pass();
  report(tracker_.take_missed());
}

torch::Tensor TrainingState::update(const torch::Tensor& loss) {
  const BatchTracker::Match batch = tracker_.match();
  torch::Tensor result = book(loss, batch.indices);
  tracker_.mark_updated(batch.number, batch.indices.size(), /*passes=*/true);
  settle();
  return result;
}

torch::Tensor TrainingState::update(const torch::Tensor& loss, const BatchOrigin& origin) {
  const std::span<const SampleIndex> indices(origin.sample_indices);
  if (origin.ticket == nullptr) return update(loss, indices);
  if (origin.ticket->pass != tracker_.pass()) {
    throw std::invalid_argument(concat("Handler: batch must belong to the running pass, got batch ",
                                       origin.ticket->number, " of a pass that has ended"));
  }
  torch::Tensor result = book(loss, indices);
  tracker_.mark_updated(origin.ticket->number, indices.size(), /*passes=*/false);
  settle();
  return result;
}

torch::Tensor TrainingState::update(const torch::Tensor& loss,
                                    std::span<const SampleIndex> indices) {
  torch::Tensor result = book(loss, indices);
  tracker_.mark_updated(indices);
  settle();
  return result;
}

void TrainingState::set_epoch(std::uint64_t epoch) {
  end_pass();
  pruner_.start_epoch(epoch);
  if (is_complete()) pruner_.set_position(0);
}

std::size_t TrainingState::num_batches(std::size_t batch_size, bool drop_last) {
  tamis::detail::require(batch_size >= 1, "Handler", "batch_size", "at least 1", batch_size);
  settle();
  const EpochPlan* plan = pruner_.plan();
  if (plan != nullptr && !is_complete()) {
    const std::size_t left = plan->size() - pruner_.position();
    return drop_last ? left / batch_size : (left + batch_size - 1) / batch_size;
  }
  const std::uint64_t epoch = plan == nullptr ? 0 : plan->epoch() + 1;
  if (epoch == pruner_.schedule().num_epochs) return 0;
  return pruner_.preview(epoch).num_batches(batch_size, drop_last);
}

std::size_t TrainingState::missed_updates() {
  settle();
  return num_missed_;
}

// Observes the loss and returns it weighted. Changes nothing if it throws.
template <typename Index>
torch::Tensor TrainingState::book(const torch::Tensor& loss, std::span<const Index> indices) {
  check_loss(loss, indices.size());
  const EpochPlan* plan = pruner_.plan();
  if (plan == nullptr)
    throw std::invalid_argument("Handler: update must come after the first reset");
  const torch::Tensor values = loss.detach();
  // One sample's mean loss is its loss, which is what some scores need.
  if (loss.dim() == 1 || indices.size() == 1) {
    const torch::Tensor floats = values.reshape({-1}).to(torch::kCPU, torch::kFloat).contiguous();
    pruner_.observe(indices, std::span<const float>(floats.data_ptr<float>(), indices.size()));
  } else {
    pruner_.observe(indices, values.item<double>());
  }
  const double mean_weight = plan->mean_weight(indices);
  if (loss.dim() == 0) return mean_weight == 1.0 ? loss : loss * mean_weight;
  std::vector<float> weights;
  weights.reserve(indices.size());
  for (const Index index : indices)
    weights.push_back(plan->weight(static_cast<std::size_t>(index)));
  return weighted_mean(loss, weights);
}

void TrainingState::report(std::size_t num_missed) {
  if (num_missed == 0) return;
  num_missed_ += num_missed;
  if (callback_) callback_(num_missed, pruner_.plan() == nullptr ? 0 : pruner_.plan()->epoch());
}

void TrainingState::settle() {
  if (tracker_.pass() == 0) return;
  pruner_.set_position(tracker_.position());
  report(tracker_.take_missed());
}

void TrainingState::end_pass() {
  if (tracker_.pass() == 0) return;
  tracker_.end_pass();
  pruner_.set_position(tracker_.position());
  report(tracker_.take_missed());
}

bool TrainingState::is_complete() const {
  return pruner_.plan() != nullptr && pruner_.position() == pruner_.plan()->size();
}

}  // namespace tamis::libtorch::detail
