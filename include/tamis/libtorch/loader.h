// Loader: torch's data loader, which also tells the handler what it hands out.
#pragma once

#include <torch/data/dataloader/stateless.h>
#include <torch/data/dataloader_options.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "tamis/libtorch/sampler.h"

namespace tamis::libtorch {

namespace detail {

// The running pass of a handler.
std::uint64_t running_pass(const HandlerState& state);
// Ends it.
void end_pass(HandlerState& state);
// Its next batch, or none any more, is handed out. Throws std::logic_error if another one runs.
void deliver(HandlerState& state, std::uint64_t pass);
void finish_delivery(HandlerState& state, std::uint64_t pass);

}  // namespace detail

// Made by Handler::loader. A range of batches; every begin() is a pass over the plan of an epoch,
// or over the rest of the epoch of a loaded state; see Sampler::reset. Keeps the handler's state
// alive. An exception of the data set ends the pass. Not thread-safe; workers are torch's.
template <typename Dataset>
class Loader {
 public:
  using BatchType = typename Dataset::BatchType;

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = BatchType;
    using difference_type = std::ptrdiff_t;
    using pointer = BatchType*;
    using reference = BatchType&;

    explicit Iterator(Loader* loader) : loader_(loader) {}  // null: the end

    // The batch handed out last, until the next ++.
    BatchType& operator*() const { return **loader_->position_; }
    BatchType* operator->() const { return &**loader_->position_; }
    Iterator& operator++() {
      if (!loader_->fetch([this] { ++*loader_->position_; })) loader_ = nullptr;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    Loader* loader_;
  };

  Loader(Dataset dataset, std::shared_ptr<detail::HandlerState> state,
         const detail::LoaderShape& shape, const torch::data::DataLoaderOptions& options)
      : state_(std::move(state)),
        loader_(
            std::make_unique<TorchLoader>(std::move(dataset), Sampler(state_, shape), options)) {}

  // Throws as Sampler::reset does.
  Iterator begin() {
    if (position_) leave();
    position_.emplace(loader_->begin());
    pass_ = detail::running_pass(*state_);
    return Iterator(fetch([] {}) ? this : nullptr);
  }
  Iterator end() { return Iterator(nullptr); }

 private:
  using TorchLoader = torch::data::StatelessDataLoader<Dataset, Sampler>;

  bool is_exhausted() { return *position_ == loader_->end(); }

  // False: there was no batch any more.
  template <typename Advance>
  bool fetch(const Advance& advance) {
    try {
      advance();
      if (!is_exhausted()) {
        detail::deliver(*state_, pass_);
        return true;
      }
    } catch (...) {
      if (detail::running_pass(*state_) == pass_) detail::end_pass(*state_);
      throw;
    }
    detail::finish_delivery(*state_, pass_);
    position_.reset();
    return false;
  }

  // Ends a pass that was left early: torch's loader starts no other one before its workers are
  // done.
  void leave() {
    if (detail::running_pass(*state_) == pass_) detail::end_pass(*state_);
    for (bool is_done = false; !is_done;) {
      try {
        while (!is_exhausted()) ++*position_;  // the sampler has nothing more for it
        is_done = true;
      } catch (const std::exception&) {
        // of a batch that nobody will see
      }
    }
    position_.reset();
  }

  std::shared_ptr<detail::HandlerState> state_;
  std::unique_ptr<TorchLoader> loader_;
  std::optional<torch::data::Iterator<BatchType>> position_;  // of the pass, until it is exhausted
  std::uint64_t pass_ = 0;
};

}  // namespace tamis::libtorch
