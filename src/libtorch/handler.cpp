#include "tamis/libtorch/handler.h"

#include <torch/torch.h>

#include <cstring>
#include <stdexcept>

#include "base/check.h"
#include "libtorch/training_state.h"

namespace tamis::libtorch {

using tamis::detail::concat;

namespace {

constexpr const char* kArchiveKey = "tamis";

detail::LoaderShape shape_of(const torch::data::DataLoaderOptions& options) {
  const torch::data::FullDataLoaderOptions full(options);
  tamis::detail::require(full.batch_size >= 1, "Handler", "batch_size", "at least 1",
                         full.batch_size);
  return {.batch_size = full.batch_size,
          .workers = full.workers,
          .max_jobs = full.max_jobs,
          // One worker takes its jobs in order, so its batches come in order.
          .ordered = full.enforce_ordering || full.workers <= 1,
          .drop_last = full.drop_last};
}

}  // namespace

Handler::Handler(const PrunerOptions& options) : Handler(Pruner(options)) {}

Handler::Handler(Pruner pruner)
    : state_(std::make_shared<detail::TrainingState>(std::move(pruner))) {}

Sampler Handler::sampler(const torch::data::DataLoaderOptions& options) const {
  return {state_, shape_of(options)};
}

Sampler Handler::sampler() const { return {state_, std::nullopt}; }

torch::Tensor Handler::update(const torch::Tensor& loss) { return state_->update(loss); }

torch::Tensor Handler::update(const torch::Tensor& loss, const torch::Tensor& indices) {
  if (!indices.defined() || indices.scalar_type() != torch::kInt64 || indices.dim() != 1) {
    throw std::invalid_argument("Handler: indices must be a 1-D int64 tensor, got another");
  }
  const torch::Tensor local = indices.to(torch::kCPU).contiguous();
  return update(loss, std::span<const SampleIndex>(local.data_ptr<std::int64_t>(),
                                                   static_cast<std::size_t>(local.numel())));
}

torch::Tensor Handler::update(const torch::Tensor& loss, std::span<const SampleIndex> indices) {
  return state_->update(loss, indices);
}

torch::Tensor Handler::update_origin(const torch::Tensor& loss, const BatchOrigin& origin) {
  return state_->update(loss, origin);
}

std::size_t Handler::missed_updates() const { return state_->missed_updates(); }

void Handler::on_missed_updates(
    std::function<void(std::size_t count, std::uint64_t epoch)> callback) {
  state_->on_missed_updates(std::move(callback));
}

std::uint64_t Handler::epoch() const {
  return pruner().plan() == nullptr ? 0 : pruner().plan()->epoch();
}

void Handler::set_epoch(std::uint64_t epoch) { state_->set_epoch(epoch); }

std::size_t Handler::num_batches(std::size_t batch_size, bool drop_last) const {
  return state_->num_batches(batch_size, drop_last);
}

const Pruner& Handler::pruner() const { return state_->pruner(); }

void Handler::record(const std::filesystem::path& folder, const RecorderOptions& options) {
  state_->record(folder, options);
}

Recorder* Handler::recorder() const { return state_->recorder(); }

void Handler::save(const std::filesystem::path& path) const {
  state_->save([&](const Pruner& pruner) { pruner.save(path); });
}

void Handler::load(const std::filesystem::path& path) {
  state_->load([&](Pruner& pruner) { pruner.load(path); });
}

void Handler::check_dataset_size(std::size_t size) const {
  tamis::detail::require(size == pruner().num_samples(), "Handler", "size of the data set",
                         concat("num_samples (", pruner().num_samples(), ")"), size);
}

std::shared_ptr<detail::BatchTracker> Handler::tracker() const {
  return {state_, &state_->tracker()};
}

Sampler::Sampler(std::shared_ptr<detail::TrainingState> state,
                 std::optional<detail::LoaderShape> shape)
    : state_(std::move(state)),
      shape_(shape),
      homogeneous_batch_size_(state_->pruner().options().homogeneous_batch_size) {}

void Sampler::reset(std::optional<std::size_t> new_size) {
  if (new_size) {
    const std::size_t num_samples = state_->pruner().num_samples();
    tamis::detail::require(*new_size == num_samples, "Sampler", "new_size",
                           concat("num_samples (", num_samples, ")"), *new_size);
  }
  pass_ = state_->start_pass(shape_);
}

std::optional<std::vector<std::size_t>> Sampler::next(std::size_t batch_size) {
  tamis::detail::require(batch_size >= 1, "Sampler", "batch_size", "at least 1", batch_size);
  tamis::detail::require(homogeneous_batch_size_ % batch_size == 0, "Sampler", "batch_size",
                         concat("homogeneous_batch_size (", homogeneous_batch_size_, ")"),
                         batch_size);
  if (pass_ == 0) reset();
  if (pass_ != state_->tracker().pass()) {
    throw std::invalid_argument(
        concat("Sampler: pass must be the running one, got one that another sampler, set_epoch or "
               "load has ended"));
  }
  return state_->tracker().next(batch_size);
}

void Sampler::save(torch::serialize::OutputArchive& archive) const {
  std::vector<std::byte> bytes;
  state_->save([&](const Pruner& pruner) { bytes = pruner.serialize(); });
  torch::Tensor tensor = torch::empty({static_cast<std::int64_t>(bytes.size())}, torch::kUInt8);
  std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  archive.write(kArchiveKey, tensor, /*is_buffer=*/true);
}

void Sampler::load(torch::serialize::InputArchive& archive) {
  torch::Tensor tensor;
  if (!archive.try_read(kArchiveKey, tensor, /*is_buffer=*/true)) {
    throw std::runtime_error("Sampler: the archive holds no tamis state");
  }
  tensor = tensor.to(torch::kCPU).contiguous();
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(tensor.data_ptr()),
                                         static_cast<std::size_t>(tensor.nbytes()));
  state_->load([&](Pruner& pruner) { pruner.deserialize(bytes); });
}

namespace detail {

BatchInProgress::BatchInProgress(std::shared_ptr<BatchTracker> tracker,
                                 std::vector<SampleIndex> indices)
    : tracker_(std::move(tracker)),
      indices_(std::move(indices)),
      ticket_(tracker_->start_batch(indices_)) {}

BatchInProgress::~BatchInProgress() {
  if (ticket_) tracker_->fail_batch(*ticket_);
}

BatchOrigin BatchInProgress::finish() {
  if (ticket_) tracker_->finish_batch(ticket_);
  return {std::move(indices_), std::move(ticket_)};
}

}  // namespace detail

}  // namespace tamis::libtorch
