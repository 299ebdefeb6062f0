#include "training/trainer/methods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "tamis/registry.h"
#include "training/trainer/presets.h"

namespace tamis::training {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Methods, EveryNameStandsForARegisteredScoreAndPolicy) {
  for (const MethodInfo& info : registered_methods()) {
    const Method method = parse_method(info.name);
    EXPECT_EQ(method.name, info.name);
    EXPECT_EQ(method.score.name, info.score);
    EXPECT_EQ(method.policy.name, info.policy);
    EXPECT_EQ(method.delta, make_policy(method.policy)->default_delta());
  }
}

TEST(Methods, BatchLossMethodsDifferFromTheirOriginalsInTheScoreOnly) {
  for (const std::string policy : {"infobatch", "seta"}) {
    const Method original = parse_method(policy);
    const Method proxied = parse_method("bls-" + policy);
    EXPECT_EQ(original.policy, proxied.policy);
    EXPECT_EQ(original.delta, proxied.delta);
    EXPECT_EQ(original.score.name, "sample-loss");
    EXPECT_EQ(proxied.score.name, "batch-loss");
  }
}

TEST(Methods, OnlyScoresOfTheBatchLossWorkWithoutSampleLosses) {
  const auto uses = [](const char* method) {
    return uses_sample_losses(parse_method(method).score);
  };
  for (const char* method : {"infobatch", "seta", "epsilon-greedy", "ucb", "trim"}) {
    EXPECT_TRUE(uses(method)) << method;
  }
  for (const char* method :
       {"full", "bls-infobatch", "bls-seta", "blr-infobatch", "random", "last-batch-loss+seta"}) {
    EXPECT_FALSE(uses(method)) << method;
  }
}

TEST(Methods, TakeOptionsForScorePolicyAndDelta) {
  const Method method = parse_method("bls-seta:alpha=0.8,groups=7,window-scale=0.5,delta=0.6");
  EXPECT_EQ(method.name, "bls-seta:alpha=0.8,groups=7,window-scale=0.5,delta=0.6");
  EXPECT_EQ(method.score.options.at("alpha"), 0.8);
  EXPECT_EQ(method.policy.options.at("groups"), 7.0);
  EXPECT_EQ(method.policy.options.at("window_scale"), 0.5);
  EXPECT_EQ(method.policy.options.at("prune_ratio"), 0.1);  // the default
  EXPECT_EQ(method.delta, 0.6);
}

TEST(Methods, TakeOptionsOfThePlan) {
  const Method plain = parse_method("bls-infobatch");
  EXPECT_FALSE(plain.homogeneous);
  EXPECT_EQ(plain.min_per_class, 0.0);
  EXPECT_FALSE(plain.target_prune);
  const Method method =
      parse_method("bls-infobatch:homogeneous=1,min-per-class=0.25,target-prune=0.3");
  EXPECT_TRUE(method.homogeneous);
  EXPECT_EQ(method.min_per_class, 0.25);
  EXPECT_EQ(method.target_prune, 0.3);
  const MethodOptions options{.common = {{"target_prune", 0.2}, {"homogeneous", 1.0}}};
  EXPECT_EQ(parse_method("blr-trim", options).target_prune, 0.2);
  EXPECT_TRUE(parse_method("blr-trim", options).homogeneous);
  EXPECT_FALSE(parse_method("full", options).target_prune);            // it has no ratio
  EXPECT_EQ(parse_method("full:target-prune=0.2").target_prune, 0.2);  // refused by the pruner
}

TEST(Methods, ReadTheInitialScoreAsPeopleWriteIt) {
  const auto initial = [](const char* text) {
    return parse_method(text).score.options.at("initial_score");
  };
  EXPECT_TRUE(std::isnan(initial("bls-seta")));
  EXPECT_TRUE(std::isnan(initial("bls-seta:init=first-batch-loss")));
  EXPECT_EQ(initial("bls-seta:init=zero"), 0.0);
  EXPECT_EQ(initial("bls-seta:init=2.5"), 2.5);
}

TEST(Methods, CombineAnyScoreWithAnyPolicy) {
  const Method method = parse_method("last-batch-loss+infobatch:prune-ratio=0.3");
  EXPECT_EQ(method.score, (Spec{"last-batch-loss"}));
  EXPECT_EQ(method.policy, (Spec{"infobatch", {{"prune_ratio", 0.3}}}));
}

TEST(Methods, WrittenOptionsWinOverNamedOnesAndTheseOverCommonOnes) {
  const MethodOptions options{.common = {{"prune_ratio", 0.2}, {"alpha", 0.4}},
                              .by_name = {{"seta", {{"prune_ratio", 0.3}}}}};
  EXPECT_EQ(parse_method("infobatch", options).policy.options.at("prune_ratio"), 0.2);
  EXPECT_EQ(parse_method("bls-seta", options).policy.options.at("prune_ratio"), 0.3);
  EXPECT_EQ(parse_method("bls-seta", options).score.options.at("alpha"), 0.4);
  EXPECT_EQ(parse_method("seta:prune-ratio=0.15", options).policy.options.at("prune_ratio"), 0.15);
}

TEST(Methods, EqualOnesAreEqualAlsoWhereTheInitialScoreIsNotANumber) {
  EXPECT_EQ(parse_method("bls-seta"), parse_method("bls-seta"));
  Method other = parse_method("bls-seta");
  other.score.options["initial_score"] = 0.0;
  EXPECT_FALSE(parse_method("bls-seta") == other);
  other = parse_method("bls-seta");
  other.policy.options["groups"] = 6;
  EXPECT_FALSE(parse_method("bls-seta") == other);
}

TEST(Methods, RefuseWhatDoesNotExistAndSayWhatDoes) {
  const auto refused = [](const std::string& text, const std::string& message) {
    EXPECT_THAT([&] { parse_method(text); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(message)))
        << text;
  };
  refused("bls", "bls-infobatch");
  refused("", "method must be one of");
  refused("bls-seta:epsilon=1", "no option epsilon");
  refused("bls-seta:alpha", "name=value");
  refused("bls-seta:alpha=high", "a number");
  refused("bls-seta:alpha=inf", "a number");
  refused("bls-seta:alpha=1", "in [0, 1)");
  refused("bls-seta:delta=1.5", "delta");
  refused("bls-seta:homogeneous=2", "homogeneous must be 0 or 1, got 2");
  refused("bls-seta:min-per-class=1.5", "min_per_class must be in [0, 1], got 1.5");
  refused("nothing+seta", "score must be one of");
  refused("batch-loss+nothing", "policy must be one of");
}

TEST(Methods, ACommonOptionThatNoMethodHasIsAMistake) {
  const Method methods[] = {parse_method("full"), parse_method("infobatch")};
  EXPECT_NO_THROW(check_used({.common = {{"prune_ratio", 0.3}, {"delta", 0.5}}}, methods));
  EXPECT_THAT(
      [&] {
        check_used({.common = {{"alpha", 0.3}}}, methods);
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("--alpha")));
}

TEST(Methods, OptionNamesAndFlagsAreTwoSpellingsOfOneThing) {
  for (const PolicyInfo& policy : registered_policies()) {
    for (const OptionInfo& option : policy.options) {
      EXPECT_EQ(option_name(option_flag(option.name)), option.name);
    }
  }
  EXPECT_EQ(option_flag("initial_score"), "--init");
  EXPECT_EQ(option_name("init"), "initial_score");
}

TEST(Presets, HaveTheAuthorsSettings) {
  for (const std::string name : {"quick", "paper-cifar10", "paper-cifar100"}) {
    const Preset& preset = find_preset(name);
    const Method bls = parse_method("bls-infobatch", preset.options);
    EXPECT_EQ(bls.score.options.at("alpha"), 0.7) << name;
    EXPECT_EQ(bls.policy.options.at("prune_ratio"), 0.5) << name;
    EXPECT_EQ(bls.delta, 0.875) << name;
  }
  const Method seta = parse_method("seta", find_preset("paper-cifar100").options);
  EXPECT_EQ(seta.policy,
            (Spec{"seta", {{"prune_ratio", 0.1}, {"groups", 5}, {"window_scale", 0.9}}}));
  EXPECT_EQ(seta.delta, 0.875);
}

TEST(Presets, AreCompleteAndValid) {
  for (const Preset& preset : registered_presets()) {
    RunConfig config = preset.config;
    EXPECT_NO_THROW(validate(config)) << preset.name;
    EXPECT_THAT(preset.methods, ::testing::Contains("full")) << preset.name;
    EXPECT_GE(preset.seeds.size(), 2U) << preset.name;
    for (const std::string& method : preset.methods) {
      EXPECT_NO_THROW(parse_method(method, preset.options)) << preset.name << " " << method;
    }
  }
  EXPECT_THROW(find_preset("slow"), std::invalid_argument);
}

}  // namespace
}  // namespace tamis::training
