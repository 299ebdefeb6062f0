// Sampler: hands the plan of each epoch to LibTorch's data loader.
#pragma once

#include <torch/data/samplers/base.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tamis/loss_book.h"

namespace tamis::libtorch {

namespace detail {

class HandlerState;

// What a sampler has to know of the loader that it draws for.
struct LoaderShape {
  std::size_t batch_size = 1;
  bool drop_last = false;
  std::size_t max_jobs = 0;  // batches that it draws when a pass begins
  bool is_ordered = true;    // batches come in the order of the sampler
  Booking booking = Booking::in_order;
};

}  // namespace detail

// Made by Handler::sampler. Copies are cheap and share the handler's state, which they keep alive.
// One pass runs at a time: the sampler that was reset last is the one that may be called for
// batches.
class Sampler final : public torch::data::samplers::Sampler<> {
 public:
  Sampler(std::shared_ptr<detail::HandlerState> state, const detail::LoaderShape& shape);

  // Starts a pass; the loader's begin() calls it. It is over the next epoch if the last pass had an
  // update, even one that was left early, and over the same samples again if it had none. After
  // load it is over the rest of the saved epoch. With several ranks, the next epoch is collective.
  // Throws std::out_of_range after the last epoch, and std::invalid_argument if `new_size` is not
  // the size of the data set.
  void reset(std::optional<std::size_t> new_size = {}) override;

  // The next samples of the pass; nothing at its end. Starts a pass if there is none. Throws
  // std::invalid_argument if batch_size is not the one given to Handler::sampler, and
  // std::logic_error if the pass has ended: another one was started, or set_epoch or load called.
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;

  // The whole state of the run, as Handler::save. load throws std::runtime_error and keeps the
  // present state if the archive does not hold the state of such a run.
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  std::shared_ptr<detail::HandlerState> state_;
  detail::LoaderShape shape_;
  std::uint64_t pass_ = 0;  // 0: none yet
};

}  // namespace tamis::libtorch
