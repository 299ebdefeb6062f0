#include "tamis/registry.h"

#include <cmath>
#include <stdexcept>

#include "base/check.h"
#include "tamis/policies/epsilon_greedy.h"
#include "tamis/policies/infobatch.h"
#include "tamis/policies/none.h"
#include "tamis/policies/random.h"
#include "tamis/policies/seta.h"
#include "tamis/policies/trim.h"
#include "tamis/policies/ucb.h"
#include "tamis/scores/batch_loss.h"
#include "tamis/scores/batch_loss_mean.h"
#include "tamis/scores/last_batch_loss.h"
#include "tamis/scores/loss_average.h"
#include "tamis/scores/loss_ucb.h"
#include "tamis/scores/reconstruction.h"
#include "tamis/scores/sample_loss.h"

namespace tamis {

namespace {

// The value of an option that has been filled in by with_defaults().
double get(const OptionMap& options, std::string_view name) { return options.find(name)->second; }

std::size_t get_count(const OptionMap& options, std::string_view who, std::string_view name) {
  const double value = get(options, name);
  detail::require(value >= 0.0 && value <= 1e9 && value == std::floor(value), who, name,
                  "a whole number of at least 0", value);
  return static_cast<std::size_t>(value);
}

OptionInfo prune_ratio(double default_value, std::string_view rule, std::string_view help) {
  return {"prune_ratio", default_value, rule, help};
}

constexpr std::string_view kFractionRemoved = "fraction of the samples that is removed";

std::vector<ScorerInfo> make_scorers() {
  return {
      {"batch-loss",
       "BLS: moving average of the mean losses of the sample's batches",
       {{"alpha", BatchLossOptions{}.alpha, "in [0, 1)", "share of the old score in the new one"},
        {"initial_score", BatchLossOptions{}.initial_score, "a finite number or first-batch-loss",
         "score before the first observation; nan: the loss of the first batch"}},
       [](std::size_t n, const OptionMap& o) {
         return make_batch_loss(
             n, {.alpha = get(o, "alpha"), .initial_score = get(o, "initial_score")});
       }},
      {"last-batch-loss",
       "mean loss of the sample's last batch (BLS without the average)",
       {},
       [](std::size_t n, const OptionMap&) { return make_last_batch_loss(n); }},
      {"sample-loss",
       "the sample's loss at its last visit; needs per-sample losses",
       {},
       [](std::size_t n, const OptionMap&) { return make_sample_loss(n); }},
      {"loss-average",
       "moving average of the sample's losses (epsilon-greedy's score)",
       {{"decay", LossAverageOptions{}.decay, "in (0, 1]", "share of the newest loss"}},
       [](std::size_t n, const OptionMap& o) {
         return make_loss_average(n, {.decay = get(o, "decay")});
       }},
      {"loss-ucb",
       "upper confidence bound of the sample's loss (UCB's score)",
       {{"decay", LossUcbOptions{}.decay, "in (0, 1]", "share of the newest loss"},
        {"confidence", LossUcbOptions{}.confidence, "in [0, 1e6)", "how much the variance counts"}},
       [](std::size_t n, const OptionMap& o) {
         return make_loss_ucb(n, {.decay = get(o, "decay"), .confidence = get(o, "confidence")});
       }},
      {"batch-loss-mean",
       "mean over all visits of the batch's loss relative to the run's",
       {},
       [](std::size_t n, const OptionMap&) { return make_batch_loss_mean(n); }},
      {"reconstruction",
       "BLR: per-sample losses reconstructed from batch means; positive losses only",
       {{"step", ReconstructionOptions{}.step, "in (0, 1]", "how far one batch moves its samples"}},
       [](std::size_t n, const OptionMap& o) {
         return make_reconstruction(n, {.step = get(o, "step")});
       }},
  };
}

std::vector<PolicyInfo> make_policies() {
  return {
      {"none",
       "the full data set in every epoch",
       "last-batch-loss",
       {},
       [](const OptionMap&) { return make_none(); }},
      {"random",
       "one random subset for the whole run",
       "last-batch-loss",
       {prune_ratio(RandomOptions{}.prune_ratio, "in [0, 1)", kFractionRemoved)},
       [](const OptionMap& o) { return make_random({.prune_ratio = get(o, "prune_ratio")}); }},
      {"random-dynamic",
       "a fresh random subset in every epoch",
       "last-batch-loss",
       {prune_ratio(RandomOptions{}.prune_ratio, "in [0, 1)", kFractionRemoved)},
       [](const OptionMap& o) {
         return make_random_dynamic({.prune_ratio = get(o, "prune_ratio")});
       }},
      {"infobatch",
       "prunes below the mean score and rescales what stays of it",
       "sample-loss",
       {prune_ratio(InfoBatchOptions{}.prune_ratio, "in [0, 0.9]",
                    "fraction of the samples below the mean that is removed")},
       [](const OptionMap& o) { return make_infobatch({.prune_ratio = get(o, "prune_ratio")}); }},
      {"seta",
       "a window of difficulty that slides from easy to hard",
       "sample-loss",
       {prune_ratio(SetaOptions{}.prune_ratio, "in [0, 1)", "fraction removed at random first"),
        {"groups", static_cast<double>(SetaOptions{}.groups), "a whole number in [1, 1000]",
         "number of difficulty groups"},
        {"window_scale", SetaOptions{}.window_scale, "in (0, 1]",
         "window as a share of the groups; groups * window_scale must round to at least 1"}},
       [](const OptionMap& o) {
         return make_seta({.prune_ratio = get(o, "prune_ratio"),
                           .groups = get_count(o, "seta", "groups"),
                           .window_scale = get(o, "window_scale")});
       }},
      {"epsilon-greedy",
       "the highest scored samples and some at random",
       "loss-average",
       {prune_ratio(EpsilonGreedyOptions{}.prune_ratio, "in [0, 1)", kFractionRemoved),
        {"epsilon", EpsilonGreedyOptions{}.epsilon, "in [0, 1]",
         "share of the kept samples that is chosen at random"}},
       [](const OptionMap& o) {
         return make_epsilon_greedy(
             {.prune_ratio = get(o, "prune_ratio"), .epsilon = get(o, "epsilon")});
       }},
      {"ucb",
       "the samples with the highest upper confidence bound",
       "loss-ucb",
       {prune_ratio(UcbOptions{}.prune_ratio, "in [0, 1)", kFractionRemoved)},
       [](const OptionMap& o) { return make_ucb({.prune_ratio = get(o, "prune_ratio")}); }},
      {"trim",
       "leaves out the highest scored samples (for wrong labels)",
       "sample-loss",
       {prune_ratio(TrimOptions{}.prune_ratio, "in [0, 1)", kFractionRemoved),
        {"warmup_epochs", static_cast<double>(TrimOptions{}.warmup_epochs),
         "a whole number of at least 0", "epochs at the start that use everything"}},
       [](const OptionMap& o) {
         return make_trim({.prune_ratio = get(o, "prune_ratio"),
                           .warmup_epochs = get_count(o, "trim", "warmup_epochs")});
       }},
  };
}

constexpr std::string_view kInfoBatch =
    "Qin et al., InfoBatch: Lossless Training Speed Up by Unbiased Dynamic Data Pruning";
constexpr std::string_view kSeta = "Zhou et al., Scale Efficient Training (SeTa)";
constexpr std::string_view kRaju =
    "Raju et al., Accelerating Deep Learning with Dynamic Data Pruning";
constexpr std::string_view kBatchLossScore =
    "Zhou et al., Batch Loss Score for Dynamic Data Pruning, CVPR 2026";

constexpr MethodInfo kMethods[] = {
    {"full", "all samples in every epoch; what the others are compared with", "last-batch-loss",
     "none", ""},
    {"none", "the same as full", "last-batch-loss", "none", ""},
    {"random", "one random subset for the whole run", "last-batch-loss", "random", ""},
    {"random-dynamic", "a fresh random subset in every epoch", "last-batch-loss", "random-dynamic",
     ""},
    {"epsilon-greedy", "the samples with the highest average loss, and some at random",
     "loss-average", "epsilon-greedy", kRaju},
    {"ucb", "the samples with the highest upper confidence bound of the loss", "loss-ucb", "ucb",
     kRaju},
    {"infobatch", "InfoBatch on per-sample losses, as its authors do", "sample-loss", "infobatch",
     kInfoBatch},
    {"seta", "SeTa on per-sample losses, as its authors do", "sample-loss", "seta", kSeta},
    {"trim", "leaves out the highest losses, for wrong labels", "sample-loss", "trim", ""},
    {"bls-infobatch", "InfoBatch on the batch loss score: needs the mean loss only", "batch-loss",
     "infobatch", kBatchLossScore},
    {"bls-seta", "SeTa on the batch loss score: needs the mean loss only", "batch-loss", "seta",
     kBatchLossScore},
    {"bls-epsilon-greedy", "epsilon-greedy on the batch loss score: needs the mean loss only",
     "batch-loss", "epsilon-greedy", ""},
    {"bls-ucb", "the samples with the highest batch loss score", "batch-loss", "ucb", ""},
    {"bls-trim", "leaves out the highest batch loss scores, for wrong labels", "batch-loss", "trim",
     ""},
    {"bls-random", "one random subset for the whole run; keeps batch loss scores", "batch-loss",
     "random", ""},
    {"bls-random-dynamic", "a fresh random subset in every epoch; keeps batch loss scores",
     "batch-loss", "random-dynamic", ""},
    {"bls-none", "all samples in every epoch; keeps batch loss scores", "batch-loss", "none", ""},
    {"blr-infobatch", "InfoBatch on losses reconstructed from batch means", "reconstruction",
     "infobatch", ""},
    {"blr-seta", "SeTa on losses reconstructed from batch means", "reconstruction", "seta", ""},
    {"blr-epsilon-greedy", "epsilon-greedy on losses reconstructed from batch means",
     "reconstruction", "epsilon-greedy", ""},
    {"blr-ucb", "the samples with the highest reconstructed losses", "reconstruction", "ucb", ""},
    {"blr-trim", "leaves out the highest reconstructed losses, for wrong labels", "reconstruction",
     "trim", ""},
    {"blr-random", "one random subset for the whole run; keeps reconstructed losses",
     "reconstruction", "random", ""},
    {"blr-random-dynamic", "a fresh random subset in every epoch; keeps reconstructed losses",
     "reconstruction", "random-dynamic", ""},
    {"blr-none", "all samples in every epoch; keeps reconstructed losses", "reconstruction", "none",
     ""},
};

template <typename Info>
const Info& find(std::span<const Info> all, std::string_view kind, std::string_view name) {
  std::string known;
  for (const Info& info : all) {
    if (info.name == name) return info;
    known += detail::concat(known.empty() ? "" : ", ", info.name);
  }
  throw std::invalid_argument(detail::concat(kind, " must be one of ", known, ", got ", name));
}

// The given options over the defaults; refuses names that do not exist.
template <typename Info>
OptionMap with_defaults(const Info& info, const OptionMap& given) {
  OptionMap options;
  for (const OptionInfo& option : info.options) {
    options.emplace(option.name, option.default_value);
  }
  for (const auto& [name, value] : given) {
    const auto known = options.find(name);
    if (known == options.end()) {
      std::string names;
      for (const OptionInfo& option : info.options) {
        names += detail::concat(names.empty() ? "" : ", ", option.name);
      }
      throw std::invalid_argument(detail::concat(info.name, ": unknown option ", name, "; it has ",
                                                 names.empty() ? "no options" : names));
    }
    known->second = value;
  }
  return options;
}

}  // namespace

std::span<const ScorerInfo> registered_scorers() {
  static const std::vector<ScorerInfo> scorers = make_scorers();
  return scorers;
}

std::span<const PolicyInfo> registered_policies() {
  static const std::vector<PolicyInfo> policies = make_policies();
  return policies;
}

std::span<const MethodInfo> registered_methods() { return kMethods; }

const ScorerInfo& find_scorer(std::string_view name) {
  return find(registered_scorers(), "score", name);
}

const PolicyInfo& find_policy(std::string_view name) {
  return find(registered_policies(), "policy", name);
}

const MethodInfo& find_method(std::string_view name) {
  return find(registered_methods(), "method", name);
}

std::unique_ptr<Scorer> make_scorer(const Spec& spec, std::size_t num_samples) {
  const ScorerInfo& info = find_scorer(spec.name);
  return info.make(num_samples, with_defaults(info, spec.options));
}

std::unique_ptr<Policy> make_policy(const Spec& spec) {
  const PolicyInfo& info = find_policy(spec.name);
  return info.make(with_defaults(info, spec.options));
}

}  // namespace tamis
