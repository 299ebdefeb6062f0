#include "training/trainer/compare.h"

#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <utility>

#include "base/agreement.h"
#include "training/data/batch.h"
#include "training/models/model.h"
#include "training/trainer/budget.h"

namespace tamis::training {

namespace {

namespace fs = std::filesystem;

RunFolder open_or_create(const fs::path& path) {
  return runs::is_run(path) ? RunFolder::open(path)
                            : RunFolder::create(path, RunFolder::Existing::refuse);
}

// Rank 0 has the folder, the others join it.
RunFolder open_or_create(const fs::path& path, const Team& team) {
  std::optional<RunFolder> folder;
  detail::together(*team.communicator(), [&] {
    if (team.is_first()) folder = open_or_create(path);
  });
  return team.is_first() ? std::move(*folder) : RunFolder::join(path);
}

// The first steps of a process are slow: threads start, code is compiled for the processor. They
// must not count against the first method.
void warm_up(const RunConfig& config, const Dataset& data) {
  torch::set_num_threads(static_cast<int>(config.training.threads));
  const auto model = make_initial_model(config, data);
  std::vector<SampleIndex> indices(std::min<std::size_t>(config.training.batch_size, data.size()));
  std::iota(indices.begin(), indices.end(), SampleIndex{0});
  const Batch batch = make_batch(data, indices);
  for (int repeat = 0; repeat < 3; ++repeat) {
    torch::nn::functional::cross_entropy(model->forward(batch.data), batch.target).backward();
  }
}

// Rank 0 decides and removes, the others follow.
bool is_discarded(const runs::PlannedRun& run, runs::Attempts& attempts, const Team& team) {
  std::int64_t is_gone = 0;
  detail::together(*team.communicator(), [&] {
    if (team.is_first()) is_gone = attempts.discards(run) ? 1 : 0;
  });
  team.communicator()->all_reduce(std::span(&is_gone, 1));
  return is_gone != 0;
}

}  // namespace

runs::ComparisonPlan make_plan(const RunConfig& shared, const std::vector<Method>& methods,
                               std::vector<std::uint64_t> seeds, std::string baseline) {
  validate(shared);
  runs::ComparisonPlan plan{.shared = shared_to_json(shared),
                            .former = former_settings(),
                            .methods = {},
                            .seeds = std::move(seeds),
                            .baseline = std::move(baseline)};
  for (const Method& method : methods) plan.methods.push_back({method.name, to_json(method)});
  runs::validate(plan);
  return plan;
}

RunConfig shared_config(const runs::Comparison& comparison) {
  return shared_from_json(comparison.plan().shared,
                          (comparison.path() / runs::kCompareFile).native());
}

Outcome run_comparison(const runs::Comparison& comparison, const DataSplits& data,
                       ComparisonObserver& observer, const StopRequest& stop, const Team& team,
                       Layout layout, bool repeats_disturbed) {
  const RunConfig shared = shared_config(comparison);
  bool is_warm = false;
  for (const runs::PlannedRun& run : comparison.runs()) {
    bool was_finished = run.is_finished();
    runs::Attempts attempts(repeats_disturbed);
    do {
      if (run.is_finished()) continue;
      was_finished = false;
      if (!is_warm) warm_up(shared, data.train);
      is_warm = true;
      RunConfig config = shared;
      choose_method(config, method_from_json(run.method->settings, run.method->name,
                                             (comparison.path() / runs::kCompareFile).native()));
      config.training.seed = run.seed;
      const auto progress = observer.begin_run(run);
      Trainer trainer(std::move(config), data, open_or_create(run.folder, team), team, layout);
      if (trainer.run(*progress, stop) == Outcome::interrupted) return Outcome::interrupted;
    } while (is_discarded(run, attempts, team));
    observer.end_run(run, was_finished);
  }
  detail::together(*team.communicator(), [&] {
    if (team.is_first()) comparison.finish();
  });
  return Outcome::finished;
}

}  // namespace tamis::training
