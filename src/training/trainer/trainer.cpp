#include "training/trainer/trainer.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "base/agreement.h"
#include "base/check.h"
#include "tamis/libtorch/output_watch.h"
#include "tamis/registry.h"
#include "training/data/batch.h"
#include "training/data/disturbance.h"
#include "training/models/model.h"
#include "training/trainer/batches.h"
#include "training/trainer/budget.h"
#include "training/trainer/checkpoint.h"
#include "training/trainer/gallery_maker.h"
#include "training/trainer/optimizer.h"
#include "training/trainer/static_scores.h"
#include "training/trainer/step_loss.h"
#include "training/trainer/stopwatch.h"

namespace tamis::training {

namespace {

using detail::concat;

std::vector<std::int32_t> labels_of(const Dataset& data) {
  const torch::Tensor labels = data.labels.to(torch::kInt32).contiguous();
  const std::int32_t* const begin = labels.data_ptr<std::int32_t>();
  return {begin, begin + labels.numel()};
}

Pruner make_pruner(const RunConfig& config, const Dataset& data, const Team& team, Layout layout) {
  const Method& method = config.method;
  return Pruner(
      {.num_samples = data.size(),
       .num_epochs = config.training.epochs,
       .policy = method.policy,
       .score = method.score,
       .delta = method.delta,
       .seed = config.training.seed,
       .homogeneous_batch_size = method.homogeneous ? config.training.batch_size : 0,
       .min_per_class = method.min_per_class,
       .labels = method.min_per_class > 0.0 ? labels_of(data) : std::vector<std::int32_t>(),
       // Fewer epochs are all that it leaves out.
       .target_prune = is_fewer_epochs(method) ? std::nullopt : method.target_prune,
       .layout = layout},
      team.is_alone() ? nullptr : team.communicator());
}

// All settings but those that may differ between machines.
void check_same_settings(const RunConfig& config, const Team& team) {
  Json json = to_json(config, {});
  json["data"].erase("data_dir");
  json["training"].erase("threads");
  json.erase("environment");
  std::string lines;
  const Json fields = json.flatten();
  for (const auto& [name, value] : fields.items()) lines += concat(name, " ", value.dump(), "\n");
  detail::require_same(*team.communicator(), lines);
}

std::size_t share_of_batch(const RunConfig& config, const Team& team) {
  detail::require(config.training.batch_size % team.size() == 0, "train", "batch_size",
                  concat("a multiple of the number of processes (", team.size(), ")"),
                  config.training.batch_size);
  return config.training.batch_size / team.size();
}

std::optional<SampleHistory> make_history(const RunConfig& config, const Dataset& data,
                                          const Team& team) {
  if (config.num_pictures == 0) return std::nullopt;
  // A rank sees its own batches only.
  detail::require(team.is_alone(), "train", "number of processes", "1 for a run with a gallery",
                  team.size());
  return SampleHistory(data.size(), config.training.epochs);
}

std::vector<float> weights_of(const EpochPlan& plan, std::size_t begin, std::size_t count) {
  std::vector<float> weights(count);
  for (std::size_t k = 0; k < count; ++k) weights[k] = plan.weight(begin + k);
  return weights;
}

// `count` samples at equal distances, so that a file sorted by class keeps all its classes.
Dataset spread(const Dataset& data, std::uint64_t count) {
  if (count == 0 || count >= data.size()) return data;
  torch::Tensor indices = torch::empty({static_cast<std::int64_t>(count)}, torch::kInt64);
  for (std::uint64_t k = 0; k < count; ++k) {
    indices.data_ptr<std::int64_t>()[k] = static_cast<std::int64_t>(k * data.size() / count);
  }
  return data.select(indices);
}

// 0, 1, ... up to `count` or `limit`, whichever is less.
std::vector<SampleIndex> count_up(std::uint64_t count, std::uint64_t limit) {
  std::vector<SampleIndex> indices(std::min(count, limit));
  std::iota(indices.begin(), indices.end(), SampleIndex{0});
  return indices;
}

// After how many epochs the losses of all recorded samples are measured: few, so that it costs
// little however long the run is.
constexpr std::uint64_t kMeasurements = 10;

}  // namespace

std::shared_ptr<const DataSplits> load_run_data(const DataConfig& config) {
  const DataSplits all = load_data(config.name, {.data_dir = config.data_dir});
  return std::make_shared<DataSplits>(DataSplits{.train = spread(all.train, config.limit),
                                                 .test = spread(all.test, config.test_limit)});
}

std::shared_ptr<Model> make_initial_model(const RunConfig& config, const Dataset& data) {
  torch::manual_seed(config.training.seed);
  auto model =
      make_model(config.model.name, {.channels = data.channels(),
                                     .height = data.height(),
                                     .width = data.width(),
                                     .num_classes = data.num_classes,
                                     .width_factor = config.model.width,
                                     .channels_last = config.training.channels_last,
                                     .bfloat16 = config.training.precision == Precision::bfloat16});
  model->prepare([&] {
    constexpr std::uint64_t kImages = 5000;  // enough for the statistics of a few pixels
    return make_batch(spread(data, kImages), count_up(kImages, data.size())).data;
  });
  return model;
}

Trainer::Trainer(RunConfig config, const DataSplits& data, RunFolder folder, Team team,
                 Layout layout)
    : config_((validate(config), std::move(config))),
      team_(std::move(team)),
      data_(std::make_unique<DataSplits>(disturb(data, config_.data, config_.training.seed))),
      folder_(std::move(folder)),
      model_(make_initial_model(config_, data_->train)),
      optimizer_(make_optimizer(parameter_groups(*model_), config_.training)),
      pruner_(make_pruner(config_, data_->train, team_, layout)),
      batch_size_(share_of_batch(config_, team_)),
      uses_scores_(make_policy(config_.method.policy)->uses_scores() && !is_static(config_.method)),
      uses_sample_losses_(uses_scores_ && takes_sample_losses(pruner_.scorer().needs())),
      uses_gradients_(uses_scores_ && pruner_.scorer().needs() == LossKind::output_gradients),
      history_(make_history(config_, data_->train, team_)) {
  torch::set_num_threads(static_cast<int>(config_.training.threads));
  check_same_settings(config_, team_);
  start_or_restore();
  if (config_.num_recorded > 0 || config_.num_pictures > 0) write_samples();
  if (config_.num_recorded > 0) start_recording();
  if (is_static(config_.method)) {
    detail::require(team_.is_alone(), "train", "number of processes", "1 for a static method",
                    team_.size());
  }
}

void Trainer::start_or_restore() {
  // Rank 0 says whether there is a run, before it begins one.
  std::int64_t is_run = team_.is_first() && runs::is_run(folder_.path()) ? 1 : 0;
  team_.communicator()->all_reduce(std::span(&is_run, 1));
  if (is_run != 0) {
    restore();
    return;
  }
  Json environment = describe_environment();
  environment["processes"] = team_.size();
  detail::together(*team_.communicator(), [&] {
    if (!team_.is_first()) return;
    folder_.write_config(to_json(config_, {.num_train = data_->train.size(),
                                           .num_test = data_->test.size(),
                                           .num_classes = data_->train.num_classes,
                                           .num_parameters = num_parameters(),
                                           .environment = environment}));
  });
}

Trainer::Trainer(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

std::int64_t Trainer::num_parameters() const { return training::num_parameters(*model_); }

void Trainer::restore() {
  const runs::RunData run = runs::read_run(folder_.path());
  const RunFacts facts = facts_from_json(run.config, (folder_ / runs::kConfigFile).native());
  if (facts.num_train != data_->train.size() || facts.num_test != data_->test.size()) {
    throw std::runtime_error(concat(folder_.path().native(), ": was begun with ", facts.num_train,
                                    " training and ", facts.num_test,
                                    " test samples, but the data now have ", data_->train.size(),
                                    " and ", data_->test.size()));
  }
  const auto state = load_checkpoint(
      folder_.path(),
      {*model_, *optimizer_, pruner_, *team_.communicator(), history_ ? &*history_ : nullptr});
  if (!state) return;
  metrics_ = run.epochs;
  // The checkpoint may be one epoch ahead of metrics.jsonl, if the program died between the two.
  const bool is_behind = metrics_.size() + 1 == state->epochs_done && state->last_metrics;
  if (is_behind) metrics_.push_back(*state->last_metrics);
  detail::together(*team_.communicator(), [&] {
    if (is_behind && team_.is_first()) folder_.write_metrics(metrics_);
  });
  if (metrics_.size() != state->epochs_done) {
    throw std::runtime_error(concat(folder_.path().native(), ": metrics.jsonl has ",
                                    metrics_.size(), " epochs, but the checkpoint has ",
                                    state->epochs_done));
  }
  if (history_ && !state->has_history && epoch() < config_.training.epochs) {
    throw std::runtime_error(concat((folder_ / runs::kCheckpointFile).native(),
                                    ": names no history, which the gallery of this run needs"));
  }
  running_ = state->running;
  step_ = state->step;
}

// For those who look at single samples later, without the data.
void Trainer::write_samples() {
  detail::together(*team_.communicator(), [&] {
    if (team_.is_first()) runs::write_samples(folder_.path(), list_samples(data_->train));
  });
}

void Trainer::start_recording() {
  detail::require(team_.is_alone(), "train", "number of processes", "1 for a run that is recorded",
                  team_.size());
  detail::require(!is_static(config_.method), "train", "method of a run that is recorded",
                  "one that scores while it trains", config_.method.name);
  const std::filesystem::path folder = folder_ / runs::kRecordFolder;
  // A run that was stopped before its first checkpoint begins again, and so does its recording.
  if (pruner_.num_observations() + pruner_.num_skipped_observations() == 0) {
    Recorder::remove(folder);
  }
  pruner_.record(folder, {.num_recorded = config_.num_recorded, .seed = config_.training.seed});
}

bool Trainer::give_static_scores(const StopRequest& stop) {
  if (!is_static(config_.method) || pruner_.num_observations() > 0) return true;
  const ProcessorTime before = read_processor_time();
  const Stopwatch watch;
  const ProcessorWatch processor;
  const auto scores = measure_static_scores(config_, data_->train, stop);
  if (!scores) return false;
  pruner_.observe(count_up(data_->train.size(), data_->train.size()), *scores);
  running_.score_seconds = watch.seconds();
  running_.count_time(running_.score_seconds, processor.seconds());
  running_.processor_time += read_processor_time() - before;
  return true;
}

Outcome Trainer::run(TrainingObserver& observer, const StopRequest& stop) {
  if (!give_static_scores(stop)) {
    save(false);
    return Outcome::interrupted;
  }
  while (epoch() < config_.training.epochs) {
    if (!train_epoch(observer, stop) || !finish_epoch(observer, stop)) {
      save(false);
      return Outcome::interrupted;
    }
  }
  return Outcome::finished;
}

// A process that is alone stops at once. Others tell in the next step, so that all stop after it.
bool Trainer::should_stop(const StopRequest& stop) {
  wants_stop_ = wants_stop_ || (stop && stop());
  return team_.is_alone() ? wants_stop_ : stops_;
}

bool Trainer::train_epoch(TrainingObserver& observer, const StopRequest& stop) {
  model_->train();
  const ProcessorTime before = read_processor_time();
  const Stopwatch planning;
  const ProcessorWatch planning_processor;
  const EpochPlan& plan = pruner_.start_epoch(epoch());
  running_.count_pruning(planning.seconds(), planning_processor.seconds());
  const std::size_t left = num_steps(plan, batch_size_);
  num_steps_ = running_.steps + left - pruner_.position() / batch_size_;
  bool is_stopped = false;
  while (pruner_.position() < plan.size() && !is_stopped) {
    is_stopped = should_stop(stop);
    if (!is_stopped) train_step(plan, observer);
  }
  running_.processor_time += read_processor_time() - before;
  return !is_stopped;
}

void Trainer::train_step(const EpochPlan& plan, TrainingObserver& observer) {
  const Stopwatch watch;
  const ProcessorWatch processor;
  const TrainingConfig& settings = config_.training;
  const std::size_t begin = pruner_.position();
  const std::size_t count = batch_length(plan.size() - begin, batch_size_);
  std::vector<SampleIndex> samples(count);
  plan.copy_to(begin, samples);
  running_.learning_rate = learning_rate_at(settings, pruner_.progress());
  set_learning_rate(*optimizer_, parameter_groups(*model_), running_.learning_rate);

  const Batch batch = load_batch(data_->train, samples, settings, epoch());
  clear_gradients(*model_);
  libtorch::OutputWatch outputs(pruner_.scorer().norm_order());
  torch::Tensor logits = model_->forward(batch.data);
  if (watches_outputs()) logits = outputs.watch(logits);
  const StepLoss loss = make_step_loss(
      logits, batch.target, plan, begin,
      {.label_smoothing = settings.label_smoothing, .per_sample = uses_sample_losses_});
  if (watches_outputs()) {
    // A run that is only recorded trains as it would without.
    outputs.bind(count, uses_gradients_ ? weights_of(plan, begin, count) : std::vector<float>());
  }
  loss.objective.backward();
  const torch::Tensor is_right = logits.detach().argmax(1).eq(batch.target).contiguous();
  StepSums sums{.loss = loss.mean_loss,
                .correct = static_cast<std::uint64_t>(is_right.sum().item<std::int64_t>()),
                .samples = count,
                .stops = wants_stop_};
  team_.average(*model_, sums);
  if (!std::isfinite(sums.loss)) {
    throw std::runtime_error(concat(folder_.path().native(), ": the loss became ", sums.loss,
                                    " in epoch ", epoch() + 1, ", step ", running_.steps + 1,
                                    "; a lower learning rate may help, this one peaks at ",
                                    settings.learning_rate));
  }
  stops_ = sums.stops;
  optimizer_->step();
  observe(begin, count, loss, outputs);
  if (history_) {
    history_->visit(samples, loss.sample_losses(), {is_right.const_data_ptr<bool>(), count});
  }
  pruner_.set_position(begin + count);

  ++step_;
  ++running_.steps;
  running_.samples += sums.samples;
  running_.correct += sums.correct;
  running_.loss_sum += sums.loss;
  running_.count_time(watch.seconds(), processor.seconds());
  observer.on_step({.epoch = epoch(),
                    .num_steps = num_steps_,
                    .progress = pruner_.progress(),
                    .pruned_share = pruner_.pruned_share(),
                    .running = running_,
                    .indices = samples,
                    .mean_loss = loss.mean_loss,
                    .losses = observes_losses() ? loss.sample_losses() : std::span<const float>()});
}

void Trainer::observe(std::size_t begin, std::size_t count, const StepLoss& loss,
                      const libtorch::OutputWatch& outputs) {
  const Stopwatch watch;
  std::vector<float> norms;
  if (watches_outputs()) {
    norms = outputs.norms();
    // Weights that stand on the losses are in their gradients too.
    if (uses_sample_losses_) {
      for (std::size_t k = 0; k < norms.size(); ++k) norms[k] /= pruner_.plan()->weight(begin + k);
    }
  }
  if (config_.num_recorded > 0) {
    pruner_.observe(begin, loss.sample_losses(), norms);
  } else if (uses_sample_losses_) {
    pruner_.observe(begin, loss.sample_losses());
  } else if (uses_gradients_) {
    pruner_.observe(begin, loss.mean_loss, norms);
  } else if (uses_scores_) {
    pruner_.observe(begin, count, loss.mean_loss);
  }
  running_.prune_seconds += loss.prune_seconds + watch.seconds();
}

bool Trainer::finish_epoch(TrainingObserver& observer, const StopRequest& stop) {
  const Stopwatch watch;
  const std::optional<Evaluation> test =
      team_.evaluate(*model_, data_->test, config_.training.test_flip, stop);
  if (!test) return false;
  const double test_seconds = watch.seconds();
  if (!record_true_losses(stop)) return false;
  if (history_) history_->end_epoch(epoch());
  const Stopwatch exchange;
  const ProcessorWatch exchange_processor;
  pruner_.exchange();
  running_.count_pruning(exchange.seconds(), exchange_processor.seconds());
  EpochMetrics metrics{
      .epoch = epoch(),
      .samples = running_.samples,
      .pruned = data_->train.size() - pruner_.plan()->num_selected(),
      .steps = running_.steps,
      .learning_rate = running_.learning_rate,
      .train_seconds = running_.train_seconds,
      .prune_seconds = running_.prune_seconds,
      .test_seconds = test_seconds,
      .score_seconds = running_.score_seconds,
      .processor_share = running_.processor_time.share(),
      .processor_seconds = running_.processor_seconds,
      .values = {{"test_accuracy", test->accuracy},
                 {"test_loss", test->loss},
                 {"train_accuracy", running_.accuracy()},
                 {"train_loss", running_.mean_loss()}},
      .scores = uses_scores_ ? runs::make_histogram(pruner_.scores()) : std::nullopt};
  metrics_.push_back(std::move(metrics));
  running_ = {};
  const bool is_last = epoch() == config_.training.epochs;
  // Before the last checkpoint, which no longer has the history.
  if (is_last && history_) {
    runs::write_gallery(folder_.path(),
                        make_gallery(*history_, data_->train, *model_,
                                     static_cast<std::size_t>(config_.num_pictures)));
  }
  save(is_last);
  detail::together(*team_.communicator(), [&] {
    if (team_.is_first()) folder_.write_metrics(metrics_);
  });
  observer.on_epoch(metrics_.back());
  return true;
}

bool Trainer::record_true_losses(const StopRequest& stop) {
  Recorder* const recorder = pruner_.recorder();
  if (recorder == nullptr || !is_chosen_epoch(epoch(), config_.training.epochs, kMeasurements)) {
    return true;
  }
  const auto losses = evaluate_samples(*model_, data_->train, recorder->samples(),
                                       config_.training.label_smoothing, stop);
  if (losses) recorder->record_true_losses(epoch(), *losses);
  return losses.has_value();
}

void Trainer::save(bool is_final) {
  CheckpointState state{.step = step_, .epochs_done = metrics_.size(), .running = running_};
  if (!metrics_.empty()) state.last_metrics = metrics_.back();
  save_checkpoint(folder_.path(),
                  {*model_, *optimizer_, pruner_, *team_.communicator(),
                   history_ && !is_final ? &*history_ : nullptr},
                  state, is_final);
}

}  // namespace tamis::training
