#include "tamis/registry.h"

#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "base/check.h"
#include "core/policies/policies.h"
#include "core/scores/scores.h"

namespace tamis {

namespace {

template <std::int64_t kLow, std::int64_t kHigh>
bool is_whole(double value) {
  return value >= static_cast<double>(kLow) && value <= static_cast<double>(kHigh) &&
         value == std::floor(value);
}

constexpr OptionRule kShare{"in [0, 1)", [](double x) { return x >= 0.0 && x < 1.0; }};
constexpr OptionRule kPositiveShare{"in (0, 1]", [](double x) { return x > 0.0 && x <= 1.0; }};

constexpr OptionInfo kDecay{"decay", 0.1, kPositiveShare, "share of the newest loss"};
constexpr OptionInfo kPruneRatio{"prune_ratio", 0.3, kShare,
                                 "fraction of the samples that is removed"};

constexpr OptionInfo score_epochs(double epochs) {
  return {"score_epochs",
          epochs,
          {"a whole number of at least 1", is_whole<1, 1'000'000'000>},
          "epochs on all samples before the subset is chosen"};
}

// Defaults are the papers', except for those of loss-average, loss-ucb, epsilon-greedy and trim,
// and the epochs of influence and forgetting, which are ours.
std::vector<ScorerInfo> make_scorers() {
  return {
      {"batch-loss",
       "BLS: moving average of the mean losses of the sample's batches",
       {{"alpha",
         0.7,
         // The score refuses 1 itself and says why.
         {kShare.text, [](double x) { return x >= 0.0 && x <= 1.0; }},
         "share of the old score in the new one"},
        {"initial_score",
         kFirstBatchLoss,
         // A score is a float: a number beyond its range would become infinite there.
         {"a finite 32-bit number or first-batch-loss",
          [](double x) { return !std::isinf(static_cast<float>(x)); }},
         "score before the first observation (first-batch-loss: the loss of the first batch)"}},
       detail::make_batch_loss},
      {"last-batch-loss",
       "mean loss of the sample's last batch (BLS without the average)",
       {},
       detail::make_last_batch_loss},
      {"sample-loss",
       "the sample's loss at its last visit; needs per-sample losses",
       {},
       detail::make_sample_loss},
      {"loss-average",
       "moving average of the sample's losses (epsilon-greedy's score)",
       {kDecay},
       detail::make_loss_average},
      {"loss-ucb",
       "upper confidence bound of the sample's loss (UCB's score)",
       {kDecay,
        {"confidence",
         1.0,
         {"in [0, 1e6)", [](double x) { return x >= 0.0 && x < 1e6; }},
         "how much the variance counts"}},
       detail::make_loss_ucb},
      {"batch-loss-mean",
       "mean over all visits of the batch's loss relative to the run's",
       {},
       detail::make_batch_loss_mean},
      {"reconstruction",
       "BLR: per-sample losses reconstructed from batch means; positive losses only",
       {{"step", 0.2, kPositiveShare, "how far one batch moves the scores of its samples"}},
       detail::make_reconstruction},
      {"output-gradient",
       "OGS: the batch's mean loss shared out by the gradients of its outputs",
       {{"power",
         1.0,
         {"in (0, 10]", [](double x) { return x > 0.0 && x <= 10.0; }},
         "exponent of the norms; 2 for squared errors"},
        {"cross_entropy",
         0.0,
         {"0 or 1", [](double x) { return x == 0.0 || x == 1.0; }},
         "1: a cross-entropy whose logits are watched; gives each sample's own loss"},
        {"alpha", 0.0, kShare, "share of the old score in the new one; 0: the last visit only"}},
       detail::make_output_gradient},
      {"el2n",
       "EL2N: norm of softmax minus label, measured before the training",
       {score_epochs(20)},
       detail::make_el2n,
       true},
      {"grand",
       "GraNd: norm of the gradient by all parameters, measured before the training",
       {score_epochs(4)},
       detail::make_grand,
       true},
      {"influence",
       "1 for what dataset pruning keeps, 0 for what it removes, found before the training",
       {score_epochs(20)},
       detail::make_influence,
       true},
      {"forgetting",
       "how often the sample was forgotten, counted before the training",
       {score_epochs(20)},
       detail::make_forgetting,
       true},
  };
}

std::vector<PolicyInfo> make_policies() {
  return {
      {"none", "the full data set in every epoch", "last-batch-loss", {}, detail::make_none},
      {"random",
       "one random subset for the whole run",
       "last-batch-loss",
       {kPruneRatio},
       detail::make_random},
      {"random-dynamic",
       "a fresh random subset in every epoch",
       "last-batch-loss",
       {kPruneRatio},
       detail::make_random_dynamic},
      {"infobatch",
       "prunes samples below the mean score and rescales those of them that stay",
       "sample-loss",
       {{"prune_ratio",
         0.5,
         {"in [0, 0.9]", [](double x) { return x >= 0.0 && x <= 0.9; }},
         "fraction of the samples below the mean that is removed"}},
       detail::make_infobatch},
      {"seta",
       "a window of difficulty that slides from easy to hard",
       "sample-loss",
       {{"prune_ratio", 0.1, kShare, "fraction removed at random first"},
        {"groups",
         5,
         {"a whole number in [1, 1000]", is_whole<1, 1000>},
         "number of difficulty groups"},
        {"window_scale", 0.9, kPositiveShare,
         "window as a share of the groups (groups * window_scale must round to at least 1)"}},
       detail::make_seta},
      {"epsilon-greedy",
       "the highest scored samples and some at random",
       "loss-average",
       {kPruneRatio,
        {"epsilon",
         0.1,
         {"in [0, 1]", [](double x) { return x >= 0.0 && x <= 1.0; }},
         "share of the kept samples that is chosen at random"}},
       detail::make_epsilon_greedy},
      {"ucb",
       "the samples with the highest upper confidence bound",
       "loss-ucb",
       {kPruneRatio},
       detail::make_ucb},
      {"trim",
       "leaves out the highest scored samples (for wrong labels)",
       "sample-loss",
       {kPruneRatio,
        {"warmup_epochs",
         5,
         {"a whole number of at least 0", is_whole<0, 1'000'000'000>},
         "epochs at the start that use everything"}},
       detail::make_trim},
      {"subset",
       "the highest scored samples, the same in every epoch; for scores given before the training",
       "el2n",
       {kPruneRatio},
       detail::make_subset},
  };
}

constexpr std::string_view kInfoBatch =
    "Qin et al., InfoBatch: Lossless Training Speed Up by Unbiased Dynamic Data Pruning";
constexpr std::string_view kSeta = "Zhou et al., Scale Efficient Training (SeTa)";
constexpr std::string_view kRaju =
    "Raju et al., Accelerating Deep Learning with Dynamic Data Pruning";
constexpr std::string_view kBatchLossScore =
    "Zhou et al., Batch Loss Score for Dynamic Data Pruning, CVPR 2026";

constexpr std::string_view kPaul =
    "Paul et al., Deep Learning on a Data Diet: Finding Important Examples Early in Training";
constexpr std::string_view kYang =
    "Yang et al., Dataset Pruning: Reducing Training Data by Examining Generalization Influence";
constexpr std::string_view kToneva =
    "Toneva et al., An Empirical Study of Example Forgetting during Deep Neural Network Learning";

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
    {"ogs-infobatch", "InfoBatch on the gradients of watched outputs: needs the mean loss only",
     "output-gradient", "infobatch", ""},
    {"ogs-seta", "SeTa on the gradients of watched outputs: needs the mean loss only",
     "output-gradient", "seta", ""},
    {"ogs-trim", "leaves out the highest gradients of watched outputs, for wrong labels",
     "output-gradient", "trim", ""},
    {"el2n", "static: the samples with the largest error after 20 epochs", "el2n", "subset", kPaul},
    {"grand", "static: the samples with the largest gradient after 4 epochs", "grand", "subset",
     kPaul},
    {"dp", "static: without the samples whose influences cancel out, after 20 epochs", "influence",
     "subset", kYang},
    {"forgetting", "static: the samples that were forgotten most often in 20 epochs", "forgetting",
     "subset", kToneva},
};

// The given options over the defaults; refuses names that do not exist and values against the rule.
template <typename Info>
OptionMap complete_options(const Info& info, const OptionMap& given) {
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
  for (const OptionInfo& option : info.options) {
    const double value = options.find(option.name)->second;
    detail::require(option.rule.accepts(value), info.name, option.name, option.rule.text, value);
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
  return detail::find_named(registered_scorers(), "score", name);
}

const PolicyInfo& find_policy(std::string_view name) {
  return detail::find_named(registered_policies(), "policy", name);
}

const MethodInfo& find_method(std::string_view name) {
  return detail::find_named(registered_methods(), "method", name);
}

std::unique_ptr<Scorer> make_scorer(const Spec& spec, std::size_t num_samples) {
  const ScorerInfo& info = find_scorer(spec.name);
  return info.make(num_samples, complete_options(info, spec.options));
}

std::unique_ptr<Policy> make_policy(const Spec& spec) {
  const PolicyInfo& info = find_policy(spec.name);
  return info.make(complete_options(info, spec.options));
}

}  // namespace tamis
