#include "tamis/libtorch/handler.h"

#include <torch/torch.h>

#include <sstream>
#include <stdexcept>

#include "base/check.h"
#include "libtorch/handler_state.h"

namespace tamis::libtorch {

using tamis::detail::concat;
using tamis::detail::require;

namespace {

// Without torch's dispatcher where the value is at hand: item() takes longer than the rest of an
// update.
double value_of(const torch::Tensor& scalar) {
  if (scalar.is_cpu() && scalar.has_storage() && !scalar.is_neg() && !scalar._is_zerotensor()) {
    if (scalar.scalar_type() == torch::kFloat) return *scalar.const_data_ptr<float>();
    if (scalar.scalar_type() == torch::kDouble) return *scalar.const_data_ptr<double>();
  }
  return scalar.item<double>();
}

// The loss of a batch as the core takes it.
class LossValue {
 public:
  LossValue(const torch::Tensor& loss, std::size_t num_samples) {
    if (!loss.defined() || !loss.is_floating_point()) {
      throw std::invalid_argument(
          concat("Handler: loss must be a floating-point tensor, got ",
                 loss.defined() ? c10::toString(loss.scalar_type()) : "an undefined one"));
    }
    if (loss.dim() > 1 || (loss.dim() == 1 && loss.size(0) != static_cast<int64_t>(num_samples))) {
      std::ostringstream shape;
      shape << loss.sizes();
      throw std::invalid_argument(
          concat("Handler: loss must be a scalar or have one value for each of the batch's ",
                 num_samples, " samples, got shape ", shape.str()));
    }
    // The mean loss of one sample is its loss, which is what some scores need.
    if (loss.dim() == 1 || num_samples == 1) {
      losses_ = loss.detach().reshape({-1}).to(torch::kCPU, torch::kFloat).contiguous();
    } else {
      mean_ = value_of(loss);
    }
  }

  // Calls `use` with the mean or with a span of losses.
  template <typename Use>
  auto give_to(const Use& use) const {
    return losses_.defined()
               ? use(std::span<const float>(losses_.const_data_ptr<float>(),
                                            static_cast<std::size_t>(losses_.numel())))
               : use(mean_);
  }

 private:
  double mean_ = 0.0;
  torch::Tensor losses_;
};

torch::Tensor scale(const torch::Tensor& loss, double weight) {
  return weight == 1.0 ? loss : loss * weight;
}

// mean(l_k * weight(k)). Half-precision losses are summed in float, as torch's own losses do.
template <typename Weight>
torch::Tensor weighted_mean(const torch::Tensor& losses, const Weight& weight) {
  const bool is_half =
      losses.scalar_type() == torch::kHalf || losses.scalar_type() == torch::kBFloat16;
  const auto type = is_half ? torch::kFloat : losses.scalar_type();
  const torch::Tensor weights = torch::empty(losses.sizes(), torch::kFloat);
  auto* const values = weights.mutable_data_ptr<float>();
  for (std::int64_t k = 0; k < losses.size(0); ++k) values[k] = weight(static_cast<std::size_t>(k));
  return (losses.to(type) * weights.to(losses.device(), type)).mean().to(losses.scalar_type());
}

}  // namespace

Handler::Handler(const PrunerOptions& options, std::shared_ptr<Communicator> communicator)
    : Handler(Pruner(options, std::move(communicator))) {}

Handler::Handler(Pruner pruner)
    : state_(std::make_shared<detail::HandlerState>(std::move(pruner))) {}

torch::Tensor Handler::update(const torch::Tensor& loss) {
  if (!state_->shape().is_ordered) {
    throw std::logic_error(
        "Handler: update(loss) does not know its batch, because several workers do not enforce the "
        "order; wrap the data set and pass the batch: update(loss, batch)");
  }
  LossBook& book = state_->book();
  const PlannedBatch batch = book.next_batch();
  const EpochPlan& plan = *state_->pruner().plan();
  const LossValue value(loss, batch.count);
  if (state_->is_watched(loss)) {
    std::vector<float> weights(batch.count);
    for (std::size_t k = 0; k < batch.count; ++k) weights[k] = plan.weight(batch.begin + k);
    observe_later(loss, std::move(weights), [&] { return book.claim(); });
  } else {
    state_->watcher().drop_pending();
    value.give_to([&](auto losses) { book.update(losses); });
  }
  state_->note_update();
  return loss.dim() == 0
             ? scale(loss, plan.mean_weight(batch.begin, batch.count))
             : weighted_mean(loss, [&](std::size_t k) { return plan.weight(batch.begin + k); });
}

torch::Tensor Handler::update(const torch::Tensor& loss, std::span<const SampleIndex> indices) {
  const EpochPlan* const plan = state_->pruner().plan();
  if (plan == nullptr) {
    throw std::logic_error(
        "Handler: update must come after the first pass has begun, or set_epoch");
  }
  LossBook& book = state_->book();
  const LossValue value(loss, indices.size());
  if (state_->is_watched(loss)) {
    std::vector<float> weights;
    for (const SampleIndex index : indices) weights.push_back(plan->weight_of(index));
    observe_later(loss, std::move(weights), [&] { return book.claim(indices); });
  } else {
    state_->watcher().drop_pending();
    value.give_to([&](auto losses) { book.update(indices, losses); });
  }
  state_->note_update();
  return loss.dim() == 0
             ? scale(loss, plan->mean_weight_of(indices))
             : weighted_mean(loss, [&](std::size_t k) { return plan->weight_of(indices[k]); });
}

torch::Tensor Handler::update(const torch::Tensor& loss, const torch::Tensor& indices) {
  if (!indices.defined() || indices.scalar_type() != torch::kInt64 || indices.dim() != 1) {
    throw std::invalid_argument("Handler: indices must be a 1-D int64 tensor, got another");
  }
  const torch::Tensor local = indices.to(torch::kCPU).contiguous();
  return update(loss, std::span<const SampleIndex>(local.const_data_ptr<std::int64_t>(),
                                                   static_cast<std::size_t>(local.numel())));
}

void Handler::observe_later(const torch::Tensor& loss, std::vector<float> weights,
                            const std::function<Claim()>& claim) {
  OutputWatch watch = state_->watcher().take(loss, weights.size());
  state_->pruner().check_observation(weights.size(), LossKind::output_gradients);
  const bool is_scalar = loss.dim() == 0;
  const bool is_exact = is_scalar && state_->watcher().exact_weights();
  watch.bind(weights.size(), is_exact ? weights : std::vector<float>());
  // The graph does not keep the handler alive, nor the handler the graph.
  watch.on_finish(loss, [weak = std::weak_ptr(state_), claimed = claim(),
                         mean = loss.detach().mean().item<double>(), weights = std::move(weights),
                         is_scalar](const OutputWatch::Backward& backward) {
    const auto state = weak.lock();
    if (!state) return;
    if (backward.norms.empty()) {
      if (backward.is_final) state->watcher().note_unreached();
      return;
    }
    std::vector<float> norms(backward.norms.begin(), backward.norms.end());
    // The gradient of losses that were weighted one by one has their weights.
    for (std::size_t k = 0; k < norms.size() && !is_scalar; ++k) norms[k] /= weights[k];
    state->book().settle(claimed, mean, norms);
  });
}

torch::Tensor Handler::watch(const torch::Tensor& output) {
  return state_->watcher().pending().watch(output);
}
std::vector<torch::Tensor> Handler::watch(const std::vector<torch::Tensor>& outputs) {
  return state_->watcher().pending().watch(outputs);
}
void Handler::set_exact_weights(bool exact) { state_->watcher().set_exact_weights(exact); }

void Handler::end_pass() { state_->end_pass(); }
const PassSummary& Handler::last_pass() const { return state_->last_pass(); }
void Handler::on_warning(std::function<void(const std::string&)> callback) {
  state_->on_warning(std::move(callback));
}

std::uint64_t Handler::epoch() const {
  return pruner().plan() == nullptr ? 0 : pruner().plan()->epoch();
}

void Handler::set_epoch(std::uint64_t epoch) { state_->set_epoch(epoch); }

std::size_t Handler::num_batches(std::size_t batch_size, bool drop_last) const {
  require(batch_size >= 1, "Handler", "batch_size", "at least 1", batch_size);
  const EpochPlan* const plan = pruner().plan();
  if (plan != nullptr && !state_->is_over()) {
    const std::size_t left = plan->size() - pruner().position();
    return drop_last ? left / batch_size : (left + batch_size - 1) / batch_size;
  }
  const std::uint64_t epoch = plan == nullptr ? 0 : plan->epoch() + 1;
  if (epoch == pruner().schedule().num_epochs) return 0;
  return pruner().preview(epoch).num_batches(batch_size, drop_last);
}

const Pruner& Handler::pruner() const { return state_->pruner(); }

void Handler::record(const std::filesystem::path& folder, const RecorderOptions& options) {
  state_->pruner().record(folder, options);
}
Recorder* Handler::recorder() { return state_->pruner().recorder(); }

void Handler::save(const std::filesystem::path& path) {
  state_->save([&](Pruner& pruner) { pruner.save(path); });
}
void Handler::load(const std::filesystem::path& path) {
  state_->load([&](Pruner& pruner) { pruner.load(path); });
}

void Handler::check_size(std::size_t size) const {
  require(size == pruner().num_samples(), "Handler", "size of the data set",
          concat("num_samples (", pruner().num_samples(), ")"), size);
}

detail::LoaderShape Handler::shape_of(const torch::data::DataLoaderOptions& options,
                                      Booking booking) const {
  const torch::data::FullDataLoaderOptions full(options);
  require(full.batch_size >= 1, "Handler", "batch_size", "at least 1", full.batch_size);
  const std::size_t homogeneous = pruner().options().homogeneous_batch_size;
  require(homogeneous % full.batch_size == 0, "Handler", "batch_size",
          concat("a divisor of homogeneous_batch_size (", homogeneous, ")"), full.batch_size);
  // Without workers, torch's loader draws as many batches as jobs and never makes them.
  require(full.workers > 0 || full.max_jobs == 0, "Handler", "max_jobs", "unset without workers",
          full.max_jobs);
  // One worker takes its jobs in order, so its batches come in order.
  const bool is_ordered = full.enforce_ordering || full.workers <= 1;
  require(is_ordered || booking == Booking::in_order, "Handler", "enforce_ordering",
          "true for several workers",
          "false; torch's loader with handler.sampler(options) does "
          "without, if update gets the batch");
  return {.batch_size = full.batch_size,
          .drop_last = full.drop_last,
          .max_jobs = full.max_jobs,
          .is_ordered = is_ordered,
          .booking = booking};
}

}  // namespace tamis::libtorch
