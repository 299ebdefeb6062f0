#include "tamis/libtorch/sampler.h"

#include <torch/torch.h>

#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "libtorch/handler_state.h"
#include "tamis/libtorch/loader.h"

namespace tamis::libtorch {

using tamis::detail::concat;
using tamis::detail::require;

namespace {

constexpr const char* kArchiveKey = "tamis";

}  // namespace

Sampler::Sampler(std::shared_ptr<detail::HandlerState> state, const detail::LoaderShape& shape)
    : state_(std::move(state)), shape_(shape) {}

void Sampler::reset(std::optional<std::size_t> new_size) {
  if (new_size) {
    const std::size_t num_samples = state_->pruner().num_samples();
    require(*new_size == num_samples, "Sampler", "new_size",
            concat("num_samples (", num_samples, ")"), *new_size);
  }
  state_->start_pass(shape_);
  pass_ = state_->pass();
}

std::optional<std::vector<std::size_t>> Sampler::next(std::size_t batch_size) {
  require(batch_size == shape_.batch_size, "Sampler", "batch_size",
          concat("that of the options given to Handler::sampler (", shape_.batch_size, ")"),
          batch_size);
  if (pass_ == 0) reset();
  if (pass_ == state_->pass()) return state_->take_batch();
  // Our own loader says so when it hands out the next batch.
  if (shape_.booking == Booking::by_delivery) return std::nullopt;
  throw std::logic_error(
      "Sampler: the pass has ended, because another one was started, or end_pass, set_epoch or "
      "load called; call reset() first (begin() of a loader does)");
}

void Sampler::save(torch::serialize::OutputArchive& archive) const {
  std::vector<std::byte> bytes;
  state_->save([&](Pruner& pruner) { bytes = pruner.serialize(); });
  torch::Tensor tensor = torch::empty({static_cast<std::int64_t>(bytes.size())}, torch::kUInt8);
  std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  archive.write(kArchiveKey, tensor, /*is_buffer=*/true);
}

void Sampler::load(torch::serialize::InputArchive& archive) {
  torch::Tensor tensor;
  if (!archive.try_read(kArchiveKey, tensor, /*is_buffer=*/true)) {
    throw std::runtime_error("Sampler: the archive holds no tamis state");
  }
  tensor = tensor.to(torch::kCPU).contiguous();
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(tensor.const_data_ptr()),
                                         static_cast<std::size_t>(tensor.nbytes()));
  state_->load([&](Pruner& pruner) { pruner.deserialize(bytes); });
}

namespace detail {

namespace {

void check_running(const HandlerState& state, std::uint64_t pass) {
  if (pass == state.pass()) return;
  throw std::logic_error(
      "Loader: the pass has ended, because its data set failed, another pass was started, or "
      "end_pass, set_epoch or load called; start another one with begin()");
}

}  // namespace

std::uint64_t running_pass(const HandlerState& state) { return state.pass(); }
void end_pass(HandlerState& state) { state.end_pass(); }

void deliver(HandlerState& state, std::uint64_t pass) {
  check_running(state, pass);
  state.deliver();
}

void finish_delivery(HandlerState& state, std::uint64_t pass) {
  check_running(state, pass);
  state.finish_delivery();
}

}  // namespace detail

}  // namespace tamis::libtorch
