#include "program/analyze/recorded_visits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace tamis::program {

namespace {

void count_epoch(const RecordedStep& step, RecordedVisits& all) {
  if (all.epochs.empty() || all.epochs.back().epoch != step.epoch) {
    all.epochs.push_back({.epoch = step.epoch});
  }
  all.num_steps = step.step + 1;
  all.epochs.back().num_steps = all.num_steps;
}

}  // namespace

bool has_finite_loss(const Recording& recording) {
  bool found = false;
  recording.read([&](const RecordedStep& step) { found = found || std::isfinite(step.mean_loss); });
  return found;
}

RecordedVisits read_visits(const Recording& recording) {
  constexpr std::uint64_t kNever = ~std::uint64_t{0};
  RecordedVisits all;
  const std::size_t num_recorded = recording.samples().size();
  all.visits.resize(num_recorded);
  all.is_complete.assign(num_recorded, true);
  std::vector<std::uint64_t> last_step(num_recorded, kNever);
  recording.read([&](const RecordedStep& step) {
    count_epoch(step, all);
    const auto batch_size = static_cast<std::uint32_t>(step.indices.size());
    all.batch_size = std::max(all.batch_size, batch_size);
    if (!std::isfinite(step.mean_loss)) {
      ++all.num_skipped;
      return;
    }
    if (all.num_steps == all.num_skipped + 1) {
      all.first_batch_loss = static_cast<double>(step.mean_loss);
    }
    for (std::size_t k = 0; k < step.places.size(); ++k) {
      const std::uint32_t place = step.places[k];
      if (last_step[place] == step.step) continue;
      last_step[place] = step.step;
      if (!std::isfinite(step.losses[k])) all.is_complete[place] = false;
      all.visits[place].push_back({.batch_loss = static_cast<double>(step.mean_loss),
                                   .sample_loss = static_cast<double>(step.losses[k]),
                                   .batch_size = batch_size});
    }
  });
  if (all.num_steps == all.num_skipped) {
    throw std::runtime_error(fmt::format("{}: the recording has no step with a finite loss yet",
                                         recording.folder().native()));
  }
  for (std::size_t place = 0; place < num_recorded; ++place) {
    if (all.visits[place].empty()) all.is_complete[place] = false;
    if (all.is_complete[place])
      all.most_visits = std::max(all.most_visits, all.visits[place].size());
  }
  return all;
}

}  // namespace tamis::program
