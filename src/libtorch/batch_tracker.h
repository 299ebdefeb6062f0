// BatchTracker: which batch a loss belongs to.
//
// LibTorch's loader asks the sampler for a batch of indices, lets a worker make the batch, and
// hands it out later. Of this, three things can be seen: the calls of next() (from the training
// thread), the data set's get_batch (from any thread), and whether the batch object still exists
// (its ticket).
//
// With workers, the loader calls next() max_jobs times when a pass starts (fewer if it gets
// nothing) and once more for every batch that it hands out, before it does; a batch that failed
// gets no such call. So in an ordered loader the number of calls tells how many batches were handed
// out, and the failures tell which. Without workers a batch is handed out when get_batch returns.
//
// A plain update belongs to the batch handed out last, unless the loop fetches ahead. At the first
// update of a pass it belongs to the oldest batch that still exists: a batch whose update was
// skipped is gone by then, one that waits behind a fetched one is not. The distance stays the same
// until the end of the pass, where the loop finishes what it holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "tamis/libtorch/indexed.h"
#include "tamis/libtorch/sampler.h"
#include "tamis/types.h"

namespace tamis::libtorch::detail {

// Thread-safe. Passes are started, asked for batches and updated from one thread.
class BatchTracker {
 public:
  // Starts a pass over order[position, end) and returns its number, from 1. `order` stays valid as
  // long as next() is called. Without a shape, only updates that name their batch can be matched.
  std::uint64_t start_pass(std::span<const std::uint32_t> order, std::size_t position,
                           std::optional<LoaderShape> shape);

  // Ends the pass, if there is one. If every batch was handed out, those without an update count as
  // missed; unless no batch of the whole order had one, then the next pass may repeat them.
  void end_pass();

  // Number of the running pass; 0 if there is none.
  std::uint64_t pass() const;

  // The sampler's next().
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size);

  // A data set starts to make the batch of these samples. Null if no sampler asked for it.
  std::shared_ptr<const BatchTicket> start_batch(std::span<const SampleIndex> indices);
  void finish_batch(const std::shared_ptr<const BatchTicket>& ticket);
  void fail_batch(const BatchTicket& ticket);

  // The batch of a plain update; its indices stay valid until it is marked. Throws
  // std::invalid_argument if it cannot be told.
  struct Match {
    std::size_t number = 0;
    std::span<const std::uint32_t> indices;
  };
  Match match();

  // Records an update of `count` samples of a batch. `passes` says that no older batch will get
  // one.
  void mark_updated(std::size_t number, std::size_t count, bool passes);
  // The same for samples named by index; those that no unfinished batch holds are ignored.
  void mark_updated(std::span<const SampleIndex> indices);

  // Where a later pass over the same order has to go on: every batch before it had its update, or
  // was passed over. Stays at 0 as long as no batch had an update.
  std::size_t position();
  // The same for a run that is saved and resumed. With workers it cannot be seen whether a loop
  // that was given the last batch passed it over or was interrupted before it; here it counts as
  // interrupted, so the batch is handed out once more.
  std::size_t resume_position();
  // Batches that were passed over since the last call; each one is returned once.
  std::size_t take_missed();

 private:
  enum class Stage { requested, ready, failed };
  struct Batch {
    std::vector<std::uint32_t> indices;
    std::size_t end = 0;  // position in the order
    Stage stage = Stage::requested;
    bool passed = false;          // will get no update any more
    std::size_t num_updated = 0;  // samples
    std::weak_ptr<const BatchTicket> ticket = {};
  };

  Batch* find(std::size_t number);
  bool is_held(std::size_t number);
  std::size_t num_handed_out() const;
  std::size_t number_of(std::size_t delivery) const;
  bool all_handed_out() const;
  bool has_ended() const;
  void check_shape(bool holds, const char* what) const;
  bool is_under_way() const;
  void pass_over_dropped();
  void settle();
  void drop_finished();

  mutable std::mutex mutex_;
  std::uint64_t last_pass_ = 0;
  bool active_ = false;
  std::optional<LoaderShape> shape_;
  std::thread::id thread_;  // that asks for batches
  std::span<const std::uint32_t> order_;
  std::size_t start_ = 0;           // of the pass, in the order
  std::size_t cursor_ = 0;          // of the next batch, in the order
  std::size_t num_total_ = 0;       // batches of the pass; needs a shape
  std::size_t num_prefetched_ = 0;  // calls of next() before the first batch is handed out
  std::size_t num_calls_ = 0;
  bool told_end_ = false;  // next() returned nothing
  std::size_t num_ready_ = 0;
  std::size_t num_updated_ = 0;      // batches
  std::size_t num_missed_ = 0;       // not yet taken
  std::vector<std::size_t> failed_;  // numbers, ascending
  std::optional<std::size_t> look_ahead_;
  std::deque<Batch> batches_;  // the unfinished ones and what lies between them
  std::size_t first_ = 0;      // number of batches_.front()
  std::size_t position_ = 0;
  std::size_t updated_position_ = 0;  // position_ after the last update
};

}  // namespace tamis::libtorch::detail
