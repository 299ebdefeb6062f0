// LossBook: which samples of the running plan a loss belongs to. It never infers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tamis/pruner.h"
#include "tamis/types.h"

namespace tamis {

// How the updates of a pass find their batch when they come without ids.
enum class Booking {
  // The loader is ours and hands out the batches itself: a loss belongs to the batch delivered
  // last. If a second batch was delivered before the first update of the pass, something fetches
  // ahead, and every update without ids is refused.
  by_delivery,
  // A loader that is not ours draws from our sampler: the k-th update of a pass belongs to its k-th
  // batch. Losses are kept back until the pass ends. None of them is observed if there were more or
  // fewer updates than batches, or if updates and batches did not alternate: a loop that fetches
  // whole windows cannot be told from one that skips a batch and repeats another. What counting
  // cannot see: both among the last batches, which the loader had fetched ahead when it ran dry.
  in_order,
};

// Samples [begin, begin + count) of this rank's plan.
struct PlannedBatch {
  std::size_t begin = 0;
  std::size_t count = 0;

  std::size_t end() const { return begin + count; }
  friend bool operator==(const PlannedBatch&, const PlannedBatch&) = default;
};

// How a pass ended.
struct PassSummary {
  std::uint64_t epoch = 0;
  std::size_t num_batches = 0;  // delivered
  std::size_t num_updates = 0;  // without ids
  // Batches without an update of any kind, not the last one of a loop that was left early; and
  // updates whose backward pass never came (num_unsettled).
  std::size_t num_missed = 0;
  std::size_t num_unsettled = 0;
  // In order: none of the losses was observed, because the numbers differ or the order is broken.
  bool dropped = false;
  bool out_of_order = false;
};

// An update whose observation comes later, in the backward pass.
struct Claim {
  std::uint64_t number = 0;  // no other claim of the book has it
  PlannedBatch batch = {};   // empty by ids
};

// What to tell the user about the pass, with the cure; empty if all went well.
std::string to_warning(const PassSummary& summary);

// Stands between a training loop and a Pruner. A pass is one walk of a loader over the rest of the
// running plan, from Pruner::position() on. A loss belongs to a batch in one of three ways: by ids,
// by delivery or in order. Whoever uses a LossBook ends the pass before Pruner::start_epoch, and
// moves the position through it only. Not thread-safe.
class LossBook {
 public:
  // `pruner` must outlive the book.
  explicit LossBook(Pruner& pruner) : pruner_(&pruner) {}

  // Starts a pass over the rest of the running plan. Throws std::logic_error if a pass is open, if
  // no epoch is running, or if a state saved in a pass in order is continued by delivery.
  void begin_pass(Booking booking);
  bool in_pass() const { return pass_.is_open; }

  // The next `count` samples of the plan have been handed out as a batch (in order: drawn). In
  // order, 0 means that the loader asked for another batch and there was none left: a loader that
  // asks once for each batch that it hands out shows so that it still does. Throws std::logic_error
  // if no pass is open and std::out_of_range past the end of the plan.
  void deliver(std::size_t count);
  // The loader has handed out all it will; what is left of the plan was dropped. The epoch is
  // complete then: by delivery at once, in order when every batch has had its update.
  void finish_delivery();

  // The batch that the next update without ids belongs to. Throws std::logic_error, with the cure,
  // if there is no such batch or if it cannot be known; in order, the pass is dropped then.
  PlannedBatch next_batch();
  // One loss of that batch: observed now (by delivery) or kept back (in order). Returns the batch.
  // Throws as next_batch() and Pruner::observe do.
  PlannedBatch update(double mean_loss);
  PlannedBatch update(std::span<const float> losses);

  // True if an update of this pass was refused because something fetches ahead: its batches may
  // still be trained on after the loader has come to its end.
  bool has_refused() const { return pass_.fetches_ahead && pass_.is_broken; }

  // By ids: the samples are known, because they travelled with the batch. Right in every loop, also
  // outside a pass. Returns what Pruner::observe returns. Throws as Pruner::observe does.
  bool update(std::span<const SampleIndex> ids, double mean_loss);
  bool update(std::span<const SampleIndex> ids, std::span<const float> losses);

  // With watched outputs: the update of a batch comes first, its norms in the backward pass.
  // claim() is an update in every way but that nothing is observed yet. Throws as update() does.
  Claim claim();
  Claim claim(std::span<const SampleIndex> ids);
  // The observation: made now, or in order kept back. Returns what Pruner::observe returns; false,
  // and does nothing, if the claim was settled before or its pass has ended.
  bool settle(const Claim& claim, double mean_loss, std::span<const float> norms);
  std::size_t num_open_claims() const { return pass_.claims.size(); }

  // Ends the pass: in order, observes or drops what was kept back; also what a loaded state has
  // kept back if its pass is not continued. Otherwise, without an open pass, does nothing.
  PassSummary end_pass();

  // Before Pruner::save: puts the open pass in order, with the losses kept back, into the pruner's
  // attachment. After Pruner::load: forgets the present pass and takes out what was saved; the next
  // pass in order continues it. Throws std::runtime_error if the attachment is damaged.
  void before_save();
  void after_load();

 private:
  // In order: what an update brought.
  enum class KeptForm : std::uint8_t { claimed, mean, losses, watched };
  struct KeptLoss {
    KeptForm form = KeptForm::claimed;
    double mean = 0.0;
    std::vector<float> values = {};  // losses, or the norms of watched outputs
  };
  struct OpenClaim {
    PlannedBatch batch = {};
    std::vector<SampleIndex> ids = {};  // empty: the batch of the plan
    std::size_t update = 0;             // in order: which one
  };
  struct Pass {
    bool is_open = false;
    Booking booking = Booking::by_delivery;
    std::uint64_t epoch = 0;
    std::vector<PlannedBatch> batches = {};  // delivered
    std::vector<bool> is_updated = {};       // of these, by an update of any kind
    std::size_t num_missing = 0;             // of these, without an update
    std::size_t num_updates = 0;             // without ids
    std::size_t expected = 0;                // batch in which the next ids are looked for first
    bool is_finished = false;                // no batch comes any more
    bool fetches_ahead = false;              // two batches came before the first update of any kind
    std::size_t num_since_update = 0;        // batches
    bool has_lag = false;                    // the first update of this walk has come
    // In order: an update had no batch, or more or less than one batch came between two updates.
    bool is_broken = false;
    std::vector<KeptLoss> kept = {};                 // in order, of the first num_updates batches
    std::map<std::uint64_t, OpenClaim> claims = {};  // by number
  };

  const EpochPlan& running_plan() const;
  bool is_complete() const;
  // Of the batch that the next update without ids belongs to.
  std::size_t next_number();
  // Throws std::logic_error with the cure; in order, the pass is dropped then.
  [[noreturn]] void refuse(const std::string& reason);
  void finish_update(std::size_t number);
  // A batch has had an update: moves the position behind it.
  void mark_updated(std::size_t number);
  void mark_updated_by(SampleIndex id);
  bool holds(std::size_t number, SampleIndex id) const;
  void observe_kept_back();
  static Pass read_pass(std::span<const std::byte> bytes);
  void check_kept(const Pass& pass) const;

  Pruner* pruner_;
  Pass pass_;
  std::uint64_t num_claims_ = 0;  // ever made
};

}  // namespace tamis
