// Sampler: hands the plan of each epoch to LibTorch's data loader.
#pragma once

#include <torch/data/samplers/base.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace tamis::libtorch {

namespace detail {

class TrainingState;

// The part of the loader's options that decides which batch a loss belongs to.
struct LoaderShape {
  std::size_t batch_size = 1;
  std::size_t workers = 0;
  std::size_t max_jobs = 0;
  bool ordered = true;
  bool drop_last = false;
};

}  // namespace detail

// Made by Handler::sampler. Copies are cheap and share the handler's state, which they keep alive.
// One pass runs at a time: the sampler that was reset last is the one that may be asked for
// batches.
class Sampler final : public torch::data::samplers::Sampler<> {
 public:
  Sampler(std::shared_ptr<detail::TrainingState> state, std::optional<detail::LoaderShape> shape);

  // Starts a pass; the loader's begin() calls it. The pass goes on where the running epoch stopped
  // (Handler::progress), or is the next epoch if the running one is complete. Throws
  // std::out_of_range after the last epoch, and std::invalid_argument if `new_size` is not the size
  // of the data set.
  void reset(std::optional<std::size_t> new_size = {}) override;

  // The next samples of the pass; nothing at its end. Starts a pass if there is none. Throws
  // std::invalid_argument if the loader does not match the options given to Handler::sampler, if
  // another sampler of the same handler has been reset, or if homogeneous batches are of another
  // size.
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;

  // The whole state of the run, as Handler::save. load throws std::runtime_error and keeps the
  // present state if the archive does not hold the state of such a run.
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  std::shared_ptr<detail::TrainingState> state_;
  std::optional<detail::LoaderShape> shape_;
  std::size_t homogeneous_batch_size_;
  std::uint64_t pass_ = 0;  // 0: none yet
};

}  // namespace tamis::libtorch
