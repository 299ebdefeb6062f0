#include "tamis/loss_book.h"

#include <stdexcept>
#include <utility>

#include "base/check.h"

namespace tamis {

namespace {

using detail::concat;

constexpr std::string_view kCure =
    "say which batch the loss belongs to: update(loss, batch), or give the indices of its samples";

void check_count(std::size_t count, std::string_view what, std::span<const float> values) {
  if (values.size() == count) return;
  throw std::invalid_argument(concat("update: the batch has ", count,
                                     " samples, so there must be as many ", what, ", got ",
                                     values.size()));
}

}  // namespace

std::string to_warning(const PassSummary& summary) {
  const auto numbers = [&] {
    return concat("epoch ", summary.epoch, ": ", summary.num_updates, " updates for ",
                  summary.num_batches, " batches");
  };
  if (summary.dropped && summary.num_updates != summary.num_batches) {
    return concat(numbers(),
                  ", so which loss belongs to which batch is not known and none of them "
                  "was used; call update once for every batch, or ",
                  kCure);
  }
  if (summary.dropped) {
    return concat(numbers(),
                  ", but not in turn, so which loss belongs to which batch is not known "
                  "and none of them was used; ",
                  kCure);
  }
  std::string text;
  if (summary.num_missed > summary.num_unsettled) {
    text = concat("epoch ", summary.epoch, ": ", summary.num_missed - summary.num_unsettled, " of ",
                  summary.num_batches, " batches had no update; their samples keep their scores");
  }
  if (summary.num_unsettled > 0) {
    text += concat(text.empty() ? "" : "; ", "epoch ", summary.epoch, ": ", summary.num_unsettled,
                   " updates with watched outputs had no backward pass; their samples keep their "
                   "scores");
  }
  return text;
}

const EpochPlan& LossBook::running_plan() const {
  const EpochPlan* const plan = pruner_->plan();
  if (plan == nullptr) throw std::logic_error("LossBook: no epoch is running; start one first");
  return *plan;
}

void LossBook::begin_pass(Booking booking) {
  if (pass_.is_open) throw std::logic_error("LossBook: a pass is open; end it before the next one");
  const EpochPlan& plan = running_plan();
  const bool continues = pass_.num_updates > 0;
  if (continues && (pass_.epoch != plan.epoch() || booking != Booking::in_order)) {
    throw std::logic_error(
        concat("LossBook: the state was saved in epoch ", pass_.epoch,
               ", in a pass whose updates are counted in order; continue it with such a loader"));
  }
  pass_.is_open = true;
  pass_.booking = booking;
  pass_.epoch = plan.epoch();
}

void LossBook::deliver(std::size_t count) {
  if (!pass_.is_open) throw std::logic_error("LossBook: no pass is open; begin one before a batch");
  auto& batches = pass_.batches;
  const std::size_t begin = batches.empty() ? pruner_->position() : batches.back().end();
  const std::size_t size = running_plan().size();
  if (begin > size || count > size - begin) {
    throw std::out_of_range(
        concat("LossBook: samples [", begin, ", ", begin + count, ") must be in a plan of ", size));
  }
  ++pass_.num_since_update;
  if (count == 0) return;
  if (!batches.empty() && pass_.num_missing == batches.size()) pass_.fetches_ahead = true;
  batches.push_back({.begin = begin, .count = count});
  pass_.is_updated.push_back(false);
  ++pass_.num_missing;
}

bool LossBook::is_complete() const {
  return pass_.is_finished && (pass_.booking == Booking::by_delivery || pass_.num_missing == 0);
}

void LossBook::finish_delivery() {
  if (!pass_.is_open) return;
  pass_.is_finished = true;
  if (is_complete()) pruner_->set_position(running_plan().size());
}

void LossBook::refuse(const std::string& reason) {
  pass_.is_broken = pass_.is_open;  // even if the caller catches the error
  throw std::logic_error(concat("update: ", reason, "; ", kCure));
}

std::size_t LossBook::next_number() {
  const std::size_t size = pass_.batches.size();
  if (!pass_.is_open || size == 0) refuse("no batch has been delivered");
  if (pass_.booking == Booking::by_delivery) {
    if (pass_.fetches_ahead) {
      refuse(
          "two batches were delivered before the first update of the pass, and a loop that "
          "fetches ahead cannot be told from one that skips a batch");
    }
    return size - 1;
  }
  const std::size_t number = pass_.num_updates;
  if (number == size) {
    refuse(concat("call ", number + 1, " of a pass that has had ", number, " batches"));
  }
  return number;
}

PlannedBatch LossBook::next_batch() { return pass_.batches[next_number()]; }

void LossBook::mark_updated(std::size_t number) {
  if (!pass_.is_updated[number]) {
    pass_.is_updated[number] = true;
    --pass_.num_missing;
  }
  const std::size_t end = is_complete() ? running_plan().size() : pass_.batches[number].end();
  if (end > pruner_->position()) pruner_->set_position(end);
}

void LossBook::finish_update(std::size_t number) {
  // A loader draws one batch for each that it hands out, until there is none left to draw.
  const std::size_t least = pass_.is_finished ? 0 : 1;
  const std::size_t num_drawn = std::exchange(pass_.num_since_update, 0);
  if (pass_.has_lag && (num_drawn < least || num_drawn > 1)) pass_.is_broken = true;
  pass_.has_lag = true;
  mark_updated(number);
  ++pass_.num_updates;
}

PlannedBatch LossBook::update(double mean_loss) {
  const std::size_t number = next_number();
  const PlannedBatch batch = pass_.batches[number];
  if (pass_.booking == Booking::in_order) {
    pruner_->check_observation(batch.count, LossKind::mean_loss);
    pass_.kept.push_back({.form = KeptForm::mean, .mean = mean_loss});
  } else {
    pruner_->observe(batch.begin, batch.count, mean_loss);
  }
  finish_update(number);
  return batch;
}

PlannedBatch LossBook::update(std::span<const float> losses) {
  const std::size_t number = next_number();
  const PlannedBatch batch = pass_.batches[number];
  check_count(batch.count, "losses", losses);
  if (pass_.booking == Booking::in_order) {
    pass_.kept.push_back(
        {.form = KeptForm::losses, .values = std::vector<float>(losses.begin(), losses.end())});
  } else {
    pruner_->observe(batch.begin, losses);
  }
  finish_update(number);
  return batch;
}

bool LossBook::holds(std::size_t number, SampleIndex id) const {
  if (pass_.is_updated[number]) return false;
  const EpochPlan& plan = running_plan();
  const PlannedBatch& batch = pass_.batches[number];
  for (std::size_t j = batch.begin; j < batch.end(); ++j) {
    if (plan.sample(j) == id) return true;
  }
  return false;
}

// Batches come in the order of delivery but for a few, so the one after the last is tried first.
void LossBook::mark_updated_by(SampleIndex id) {
  const std::size_t size = pass_.batches.size();
  if (!pass_.is_open || pass_.num_missing == 0) return;
  for (std::size_t k = 0; k < size; ++k) {
    const std::size_t number = (pass_.expected + k) % size;
    if (!holds(number, id)) continue;
    mark_updated(number);
    pass_.expected = number + 1;
    return;
  }
}

bool LossBook::update(std::span<const SampleIndex> ids, double mean_loss) {
  const bool applied = pruner_->observe(ids, mean_loss);
  mark_updated_by(ids.front());
  return applied;
}

bool LossBook::update(std::span<const SampleIndex> ids, std::span<const float> losses) {
  const bool applied = pruner_->observe(ids, losses);
  mark_updated_by(ids.front());
  return applied;
}

Claim LossBook::claim() {
  const std::size_t number = next_number();
  const PlannedBatch batch = pass_.batches[number];
  pruner_->check_observation(batch.count, LossKind::output_gradients);
  if (pass_.booking == Booking::in_order) pass_.kept.push_back({.form = KeptForm::claimed});
  const std::size_t update = pass_.num_updates;
  finish_update(number);
  pass_.claims.emplace(++num_claims_, OpenClaim{.batch = batch, .update = update});
  return {.number = num_claims_, .batch = batch};
}

Claim LossBook::claim(std::span<const SampleIndex> ids) {
  if (ids.empty()) {
    throw std::invalid_argument("update: ids must be those of at least one sample, got none");
  }
  pruner_->check_observation(ids.size(), LossKind::output_gradients);
  mark_updated_by(ids.front());
  pass_.claims.emplace(++num_claims_, OpenClaim{.ids = {ids.begin(), ids.end()}});
  return {.number = num_claims_};
}

bool LossBook::settle(const Claim& claim, double mean_loss, std::span<const float> norms) {
  const auto found = pass_.claims.find(claim.number);
  if (found == pass_.claims.end()) return false;
  const OpenClaim open = std::move(found->second);
  pass_.claims.erase(found);
  if (!open.ids.empty()) return pruner_->observe(open.ids, mean_loss, norms);
  check_count(open.batch.count, "norms", norms);
  if (pass_.booking == Booking::by_delivery) {
    return pruner_->observe(open.batch.begin, mean_loss, norms);
  }
  pass_.kept[open.update] = {.form = KeptForm::watched,
                             .mean = mean_loss,
                             .values = std::vector<float>(norms.begin(), norms.end())};
  return true;
}

void LossBook::observe_kept_back() {
  for (std::size_t k = 0; k < pass_.num_updates; ++k) {
    const PlannedBatch& batch = pass_.batches[k];
    const KeptLoss& kept = pass_.kept[k];
    switch (kept.form) {
      case KeptForm::claimed:
        break;
      case KeptForm::mean:
        pruner_->observe(batch.begin, batch.count, kept.mean);
        break;
      case KeptForm::losses:
        pruner_->observe(batch.begin, kept.values);
        break;
      case KeptForm::watched:
        pruner_->observe(batch.begin, kept.mean, kept.values);
        break;
    }
  }
}

PassSummary LossBook::end_pass() {
  if (!pass_.is_open && pass_.num_updates == 0 && pass_.claims.empty()) return {};
  PassSummary summary{.epoch = pass_.epoch,
                      .num_batches = pass_.batches.size(),
                      .num_updates = pass_.num_updates,
                      .num_missed = pass_.num_missing};
  const EpochPlan* const plan = pruner_->plan();
  const bool is_outside = !pass_.is_open && pass_.num_updates == 0;  // claims by ids only
  if (is_outside && plan != nullptr) summary.epoch = plan->epoch();
  summary.num_unsettled = pass_.claims.size();
  summary.num_missed += summary.num_unsettled;
  // A loop that is left early has not missed the batch with which it was left.
  if (!pass_.is_finished && !pass_.is_updated.empty() && !pass_.is_updated.back()) {
    --summary.num_missed;
  }
  if (pass_.booking == Booking::in_order && (pass_.num_updates > 0 || pass_.is_broken)) {
    summary.out_of_order = pass_.is_broken;
    summary.dropped = pass_.is_broken || pass_.num_updates != pass_.batches.size();
    if (!summary.dropped) observe_kept_back();
  }
  if (pass_.is_finished) pruner_->set_position(running_plan().size());
  pass_ = {};
  return summary;
}

}  // namespace tamis
