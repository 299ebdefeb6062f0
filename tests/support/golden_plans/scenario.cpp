#include "support/golden_plans/scenario.h"

#include <algorithm>
#include <array>
#include <functional>

namespace tamis::test::golden {

namespace {

constexpr RankLayout kOne = {Kind::one, 1};
constexpr RankLayout kReplicated1 = {Kind::replicated, 1};
constexpr RankLayout kReplicated2 = {Kind::replicated, 2};
constexpr RankLayout kReplicated3 = {Kind::replicated, 3};
constexpr RankLayout kSharded1 = {Kind::sharded, 1};
constexpr RankLayout kSharded2 = {Kind::sharded, 2};
constexpr RankLayout kSharded3 = {Kind::sharded, 3};
using Layouts = std::vector<RankLayout>;
const Layouts kAll = {kOne, kReplicated2, kReplicated3, kSharded2, kSharded3};
// For plan options: version 0.1.0 refuses them in the sharded layout.
const Layouts kUnsharded = {kOne, kReplicated2, kReplicated3};

// Trim prunes nothing before epoch 5 by default, which is the last one here.
Named policy_of(const std::string& name) {
  if (name == "trim") return {name, {{"warmup_epochs", 1.0}}};
  return {name};
}

// The score that the policy's authors use.
std::string default_score(const std::string& policy) {
  if (policy == "infobatch" || policy == "seta" || policy == "trim") return "sample-loss";
  if (policy == "epsilon-greedy") return "loss-average";
  if (policy == "ucb") return "loss-ucb";
  return "last-batch-loss";
}

std::string number_to_text(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

class List {
 public:
  std::vector<Scenario> take() { return std::move(scenarios_); }

  void add(const Layouts& layouts, const std::string& policy, const std::string& score,
           const std::string& suffix, const std::function<void(Scenario&)>& change = {}) {
    for (const RankLayout layout : layouts) {
      Scenario scenario;
      scenario.policy = policy_of(policy);
      scenario.score = {score};
      scenario.layout = layout;
      if (change) change(scenario);
      if (scenario.num_samples < 32)
        scenario.batch_size = std::min<std::size_t>(3, scenario.batch_size);
      scenario.name = policy + "/" + score + "/" + to_text(layout) + "/n" +
                      std::to_string(scenario.num_samples);
      if (!suffix.empty()) scenario.name += "/" + suffix;
      scenarios_.push_back(std::move(scenario));
    }
  }

 private:
  std::vector<Scenario> scenarios_;
};

// Every score with every policy.
void add_pairs(List& list) {
  for (const auto& policy : policy_names()) {
    for (const auto& score : score_names()) {
      list.add(kAll, policy, score, "");
      list.add({kOne, kSharded2}, policy, score, "", [](Scenario& s) { s.num_samples = 3001; });
    }
  }
}

void add_sizes(List& list) {
  for (const auto& policy : policy_names()) {
    const std::string score = default_score(policy);
    const auto size = [](std::size_t n) { return [n](Scenario& s) { s.num_samples = n; }; };
    list.add(kUnsharded, policy, score, "", size(1));
    list.add({kSharded1}, policy, score, "", size(1));
    list.add(kAll, policy, score, "", size(7));
    list.add({kReplicated3}, policy, score, "", size(3001));
    list.add({kReplicated1, kSharded1}, policy, score, "", size(500));
    list.add({kOne, kReplicated2, kSharded2}, policy, score, "", size(200'000));
    list.add({kOne}, policy, "batch-loss", "", size(200'000));
  }
}

void add_schedules(List& list) {
  for (const auto& policy : policy_names()) {
    const std::string score = default_score(policy);
    for (const double delta : {0.0, 0.5, 1.0}) {
      list.add({kOne, kReplicated2, kSharded2}, policy, score, "delta=" + number_to_text(delta),
               [=](Scenario& s) { s.delta = delta; });
    }
    list.add({kOne, kReplicated3, kSharded3}, policy, score, "seed=0",
             [](Scenario& s) { s.seed = 0; });
    list.add({kOne, kReplicated2, kSharded2}, policy, score, "seed=max",
             [](Scenario& s) { s.seed = ~std::uint64_t{0}; });
    // Epochs that are left out and one that comes twice.
    list.add({kOne, kReplicated2, kSharded2}, policy, score, "epochs=013013",
             [](Scenario& s) { s.epochs = {0, 1, 3, 0, 1, 3}; });
  }
}

void add_policy_options(List& list) {
  struct Variant {
    std::string policy;
    std::vector<std::pair<std::string, double>> options;
  };
  std::vector<Variant> variants = {
      {"seta", {{"groups", 1}, {"window_scale", 1}}},
      {"seta", {{"groups", 2}, {"window_scale", 0.5}}},
      {"seta", {{"groups", 3}, {"window_scale", 0.34}}},
      {"seta", {{"groups", 20}, {"window_scale", 0.3}}},
      {"seta", {{"groups", 1000}, {"window_scale", 0.5}}},
      {"epsilon-greedy", {{"epsilon", 0}}},
      {"epsilon-greedy", {{"epsilon", 0.5}}},
      {"epsilon-greedy", {{"epsilon", 1}, {"prune_ratio", 0.6}}},
      {"trim", {{"warmup_epochs", 0}}},
      {"trim", {{"warmup_epochs", 5}}},
      {"trim", {{"warmup_epochs", 1}, {"prune_ratio", 0.75}}},
      {"infobatch", {{"prune_ratio", 0.9}}},
  };
  for (const auto& policy : policy_names()) {
    if (policy == "none") continue;
    variants.push_back({policy, {{"prune_ratio", 0}}});
    variants.push_back({policy, {{"prune_ratio", 0.75}}});
    if (policy != "infobatch") variants.push_back({policy, {{"prune_ratio", 0.999}}});
  }
  for (const Variant& variant : variants) {
    std::string suffix;
    for (const auto& [name, value] : variant.options) {
      suffix += (suffix.empty() ? "" : ",") + name + "=" + number_to_text(value);
    }
    list.add({kOne, kReplicated2, kSharded2}, variant.policy, default_score(variant.policy), suffix,
             [&](Scenario& s) { s.policy.options = variant.options; });
  }
}

void add_score_options(List& list) {
  const std::vector<Named> variants = {
      {"batch-loss", {{"alpha", 0}}},
      {"batch-loss", {{"alpha", 0.95}}},
      {"batch-loss", {{"initial_score", 0}}},
      {"batch-loss", {{"alpha", 0.5}, {"initial_score", 2.5}}},
      {"loss-average", {{"decay", 1}}},
      {"loss-average", {{"decay", 0.5}}},
      {"loss-ucb", {{"decay", 0.5}}},
      {"loss-ucb", {{"confidence", 0}}},
      {"loss-ucb", {{"decay", 1}, {"confidence", 100}}},
      {"reconstruction", {{"step", 1}}},
      {"reconstruction", {{"step", 0.05}}},
  };
  for (const Named& score : variants) {
    std::string suffix;
    for (const auto& [name, value] : score.options) {
      suffix += (suffix.empty() ? "" : ",") + name + "=" + number_to_text(value);
    }
    list.add({kOne, kReplicated2, kSharded2}, "infobatch", score.name, suffix,
             [&](Scenario& s) { s.score = score; });
    list.add({kOne, kSharded3}, "ucb", score.name, suffix, [&](Scenario& s) { s.score = score; });
  }
}

void add_losses(List& list) {
  for (const auto& policy : policy_names()) {
    const std::string score = default_score(policy);
    list.add({kOne, kReplicated2, kSharded2, kSharded3}, policy, score, "tied", [](Scenario& s) {
      s.losses = Losses::tied;
      s.form = Form::per_sample;
    });
    list.add({kOne, kReplicated2, kSharded2}, policy, score, "equal",
             [](Scenario& s) { s.losses = Losses::equal; });
    list.add(kAll, policy, score, "half", [](Scenario& s) { s.trains_half = true; });
    list.add({kOne, kSharded2}, policy, "batch-loss", "half",
             [](Scenario& s) { s.trains_half = true; });
  }
  for (const auto& score : score_names()) {
    list.add({kOne, kReplicated2, kSharded2}, "infobatch", score, "negative",
             [](Scenario& s) { s.losses = Losses::with_negative; });
    list.add({kOne, kReplicated2, kSharded2}, "seta", score, "per-sample",
             [](Scenario& s) { s.form = Form::per_sample; });
    list.add({kOne, kReplicated2, kSharded2}, "infobatch", score, "others",
             [](Scenario& s) { s.observes_others = true; });
    list.add({kOne, kReplicated2, kSharded2}, "infobatch", score, "batch=1", [](Scenario& s) {
      s.num_samples = 100;
      s.batch_size = 1;
    });
    list.add({kOne, kReplicated2, kSharded2}, "infobatch", score, "batch=1000",
             [](Scenario& s) { s.batch_size = 1000; });
    if (score == "sample-loss") continue;
    // What ranks do with a mean: if one process did it as well, it would be these.
    list.add({kOne, kReplicated1}, "infobatch", score, "float-mean",
             [](Scenario& s) { s.form = Form::float_mean; });
  }
}

void add_plan_options(List& list) {
  for (const auto& policy : policy_names()) {
    const std::string score = default_score(policy);
    const auto target = [&](double value) {
      return policy == "none" || policy == "random" ? std::optional<double>() : value;
    };
    const bool has_target = target(0.35).has_value();
    // Only infobatch has two weights.
    if (policy == "infobatch") {
      for (const std::size_t size : {7, 32, 1000}) {
        const auto change = [=](Scenario& s) { s.homogeneous_batch_size = size; };
        const std::string suffix = "homogeneous=" + std::to_string(size);
        list.add(kUnsharded, policy, score, suffix, change);
        list.add(kUnsharded, policy, "batch-loss", suffix, change);
      }
      list.add({kOne, kReplicated2}, policy, "batch-loss", "homogeneous=32,prune_ratio=0.9",
               [](Scenario& s) {
                 s.num_samples = 3001;
                 s.homogeneous_batch_size = 32;
                 s.policy.options = {{"prune_ratio", 0.9}};
               });
    } else {
      list.add({kOne, kReplicated2}, policy, score, "homogeneous=32",
               [](Scenario& s) { s.homogeneous_batch_size = 32; });
    }
    list.add(kUnsharded, policy, score, "classes=0.9", [](Scenario& s) { s.min_per_class = 0.9; });
    list.add({kOne}, policy, score, "classes=0.5", [](Scenario& s) { s.min_per_class = 0.5; });
    list.add({kOne}, policy, score, "classes=1", [](Scenario& s) { s.min_per_class = 1.0; });
    list.add({kOne, kReplicated2}, policy, score, "homogeneous=32,classes=0.8", [](Scenario& s) {
      s.homogeneous_batch_size = 32;
      s.min_per_class = 0.8;
    });
    if (!has_target) continue;
    for (const double value : {0.0, 0.1, 0.35, 0.5}) {
      list.add(value == 0.35 ? kUnsharded : Layouts{kOne}, policy, score,
               "target=" + number_to_text(value), [=](Scenario& s) { s.target_prune = value; });
    }
    list.add({kOne, kReplicated2}, policy, score, "target=0.25,delta=0.5", [](Scenario& s) {
      s.target_prune = 0.25;
      s.delta = 0.5;
    });
    list.add({kOne}, policy, score, "target=0.35,epochs=0135", [](Scenario& s) {
      s.target_prune = 0.35;
      s.epochs = {0, 1, 3, 5};
    });
    list.add({kOne, kReplicated2}, policy, score, "homogeneous=32,target=0.35", [](Scenario& s) {
      s.homogeneous_batch_size = 32;
      s.target_prune = 0.35;
    });
    list.add({kOne, kReplicated2}, policy, score, "classes=0.6,target=0.35", [](Scenario& s) {
      s.min_per_class = 0.6;
      s.target_prune = 0.35;
    });
    list.add({kOne, kReplicated3}, policy, "batch-loss", "homogeneous=32,classes=0.6,target=0.35",
             [](Scenario& s) {
               s.num_samples = 3001;
               s.homogeneous_batch_size = 32;
               s.min_per_class = 0.6;
               s.target_prune = 0.35;
             });
  }
}

void add_remainders(List& list) {
  for (const auto& policy : policy_names()) {
    const auto drop = [](std::size_t n) {
      return [n](Scenario& s) {
        s.num_samples = n;
        s.drops_remainder = true;
      };
    };
    const std::string score = default_score(policy);
    list.add({kReplicated3, kSharded3}, policy, score, "drop", drop(500));
    list.add({kReplicated2, kSharded2}, policy, score, "drop", drop(7));
  }
  list.add({kReplicated2}, "infobatch", "batch-loss", "drop", [](Scenario& s) {
    s.num_samples = 1;
    s.drops_remainder = true;
  });
}

void add_resumed(List& list) {
  const auto resumed = [](Resume resume) { return [=](Scenario& s) { s.resume = resume; }; };
  for (const auto& policy : policy_names()) {
    const std::string score = default_score(policy);
    list.add(kAll, policy, score, "mid", resumed(Resume::mid_epoch));
    list.add({kOne, kReplicated2, kSharded2}, policy, score, "between",
             resumed(Resume::between_epochs));
    list.add({kOne, kReplicated2}, policy, score, "mid,homogeneous=32,classes=0.8",
             [](Scenario& s) {
               s.resume = Resume::mid_epoch;
               s.homogeneous_batch_size = 32;
               s.min_per_class = 0.8;
             });
    if (policy == "none" || policy == "random") continue;
    list.add({kOne, kReplicated3}, policy, score, "mid,target=0.35", [](Scenario& s) {
      s.resume = Resume::mid_epoch;
      s.target_prune = 0.35;
    });
  }
  for (const auto& score : score_names()) {
    if (score == "sample-loss") continue;
    list.add(kAll, "infobatch", score, "mid", resumed(Resume::mid_epoch));
    list.add({kReplicated3, kSharded3}, "infobatch", score, "mid,drop", [](Scenario& s) {
      s.resume = Resume::mid_epoch;
      s.drops_remainder = true;
    });
  }
  // Other ranks go on than those that saved.
  const std::vector<std::pair<RankLayout, RankLayout>> moves = {
      {kOne, kReplicated2},         {kReplicated2, kOne},      {kReplicated2, kReplicated3},
      {kReplicated3, kReplicated1}, {kOne, kSharded2},         {kSharded2, kOne},
      {kSharded2, kSharded3},       {kSharded3, kReplicated2}, {kReplicated2, kSharded3},
  };
  for (const auto& [from, to] : moves) {
    const RankLayout other = to;
    for (const std::string policy : {"infobatch", "seta"}) {
      list.add({from}, policy, "reconstruction", "between,then-" + to_text(to), [=](Scenario& s) {
        s.resume = Resume::between_epochs;
        s.resume_layout = other;
      });
      if (from.kind == Kind::sharded || to.kind == Kind::sharded) continue;
      list.add({from}, policy, "batch-loss", "mid,then-" + to_text(to), [=](Scenario& s) {
        s.resume = Resume::mid_epoch;
        s.resume_layout = other;
      });
    }
  }
}

// Later than the others: the score of watched outputs.
void add_output_gradients(List& list) {
  const std::string score = "output-gradient";
  for (const auto& policy : policy_names()) {
    list.add(kAll, policy, score, "");
    list.add({kOne, kReplicated3, kSharded2}, policy, score, "",
             [](Scenario& s) { s.num_samples = 3001; });
    list.add(kAll, policy, score, "power=2,alpha=0.5", [](Scenario& s) {
      s.score.options = {{"power", 2}, {"alpha", 0.5}};
    });
    list.add(kAll, policy, score, "mid", [](Scenario& s) { s.resume = Resume::mid_epoch; });
    list.add({kOne, kReplicated2, kSharded2}, policy, score, "others",
             [](Scenario& s) { s.observes_others = true; });
  }
}

}  // namespace

std::string to_text(RankLayout layout) {
  if (layout.kind == Kind::one) return "one";
  return (layout.kind == Kind::replicated ? "replicated" : "sharded") +
         std::to_string(layout.num_ranks);
}

std::vector<std::string> score_names() {
  return {"batch-loss", "last-batch-loss", "sample-loss",   "loss-average",
          "loss-ucb",   "batch-loss-mean", "reconstruction"};
}

std::vector<std::string> policy_names() {
  return {"none", "random", "random-dynamic", "infobatch", "seta", "epsilon-greedy", "ucb", "trim"};
}

std::vector<Scenario> make_scenarios() {
  List list;
  add_pairs(list);
  add_sizes(list);
  add_schedules(list);
  add_policy_options(list);
  add_score_options(list);
  add_losses(list);
  add_plan_options(list);
  add_remainders(list);
  add_resumed(list);
  add_output_gradients(list);
  return list.take();
}

std::vector<StateFixture> make_state_fixtures() {
  std::vector<StateFixture> fixtures;
  const auto add = [&](const std::string& file, const std::string& policy, const std::string& score,
                       RankLayout layout, Resume resume, const Layouts& loads,
                       const std::function<void(Scenario&)>& change = {}) {
    List list;
    list.add({layout}, policy, score, "", [&](Scenario& s) {
      s.num_samples = 200;
      s.batch_size = 16;
      s.resume = resume;
      if (change) change(s);
    });
    Scenario scenario = list.take().front();
    scenario.name = file;
    fixtures.push_back({std::move(scenario), loads});
  };
  add("one-new", "infobatch", "batch-loss", kOne, Resume::never, kAll);
  add("one-mid", "infobatch", "batch-loss", kOne, Resume::mid_epoch, kUnsharded);
  add("one-between", "infobatch", "batch-loss", kOne, Resume::between_epochs, kAll);
  add("one-options-mid", "infobatch", "batch-loss", kOne, Resume::mid_epoch, kUnsharded,
      [](Scenario& s) {
        s.homogeneous_batch_size = 16;
        s.min_per_class = 0.8;
        s.target_prune = 0.3;
        s.delta = 0.9;
        s.seed = ~std::uint64_t{0};
        s.policy.options = {{"prune_ratio", 0.4}};
        s.score.options = {{"alpha", 0.9}, {"initial_score", 0}};
      });
  add("one-classes-between", "trim", "sample-loss", kOne, Resume::between_epochs, kUnsharded,
      [](Scenario& s) { s.min_per_class = 0.9; });
  add("one-blr-mid", "seta", "reconstruction", kOne, Resume::mid_epoch, kUnsharded);
  add("one-mean-mid", "random-dynamic", "batch-loss-mean", kOne, Resume::mid_epoch, kUnsharded);
  add("one-ucb-between", "ucb", "loss-ucb", kOne, Resume::between_epochs, kAll);
  add("one-half-mid", "epsilon-greedy", "loss-average", kOne, Resume::mid_epoch, kUnsharded,
      [](Scenario& s) { s.trains_half = true; });
  add("replicated2-mid", "infobatch", "batch-loss", kReplicated2, Resume::mid_epoch, kUnsharded);
  add("replicated3-between", "seta", "sample-loss", kReplicated3, Resume::between_epochs, kAll);
  add("sharded2-mid", "infobatch", "batch-loss", kSharded2, Resume::mid_epoch, {kSharded2});
  add("sharded2-between", "infobatch", "batch-loss", kSharded2, Resume::between_epochs, kAll);
  add("sharded2-blr-mid", "seta", "reconstruction", kSharded2, Resume::mid_epoch, {kSharded2});
  add("sharded3-mean-mid", "trim", "batch-loss-mean", kSharded3, Resume::mid_epoch, {kSharded3});
  return fixtures;
}

namespace {

std::uint64_t splitmix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

}  // namespace

float loss_of(Losses losses, std::uint64_t epoch, std::uint64_t sample) {
  const std::uint64_t own = splitmix64(sample) >> 44U;                                 // 20 bits
  const std::uint64_t noise = splitmix64(splitmix64(epoch + 0x5eed) ^ sample) >> 46U;  // 18 bits
  std::int64_t millionths = 0;  // of 2^20, below 2^22
  switch (losses) {
    case Losses::smooth:
    case Losses::with_negative:
      millionths = static_cast<std::int64_t>(
          1 + (own * (32 - std::min<std::uint64_t>(epoch, 24))) / 16 + noise);
      if (losses == Losses::with_negative) millionths -= std::int64_t{9} << 17U;
      break;
    case Losses::tied:
      millionths = static_cast<std::int64_t>((((own >> 2U) + (noise >> 17U)) % 4 + 1) << 18U);
      break;
    case Losses::equal:
      millionths = 3 << 18U;
      break;
  }
  return static_cast<float>(millionths) / 1048576.0F;
}

std::int32_t class_of(std::uint64_t sample) {
  const std::uint64_t draw = splitmix64(sample ^ 0xc1a55) % 18;
  return draw < 9 ? -3 : static_cast<std::int32_t>(draw * 1000);
}

}  // namespace tamis::test::golden
