#include "tamis/method.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "tamis/registry.h"

namespace tamis {
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

TEST(Methods, SayWhatKindOfLossTheyNeed) {
  const auto expect = [](LossKind kind, const std::vector<const char*>& methods) {
    for (const char* method : methods) {
      EXPECT_EQ(make_scorer(parse_method(method).score, 1)->needs(), kind) << method;
    }
  };
  expect(LossKind::sample_losses, {"infobatch", "seta", "trim"});
  expect(LossKind::any_losses, {"epsilon-greedy", "ucb"});
  expect(LossKind::output_gradients, {"ogs-infobatch", "ogs-seta", "ogs-trim"});
  expect(LossKind::mean_loss,
         {"full", "bls-infobatch", "bls-seta", "blr-infobatch", "random", "last-batch-loss+seta"});
}

TEST(Methods, CoverEveryPolicyAloneAndWithTheScoresOfBlsAndBlr) {
  for (const PolicyInfo& policy : registered_policies()) {
    if (policy.name == "subset") continue;  // of the static methods, which have names of their own
    const std::string name(policy.name);
    EXPECT_EQ(find_method(name).score, policy.default_score);
    EXPECT_EQ(find_method(name).policy, policy.name);
    EXPECT_EQ(find_method("bls-" + name).score, "batch-loss");
    EXPECT_EQ(find_method("bls-" + name).policy, policy.name);
    EXPECT_EQ(find_method("blr-" + name).score, "reconstruction");
    EXPECT_EQ(find_method("blr-" + name).policy, policy.name);
  }
  EXPECT_EQ(find_method("full").policy, "none");
}

TEST(SpecText, IsReadBackAsItWasWritten) {
  for (const Spec& spec :
       {Spec{"none"}, Spec{"seta", {{"prune_ratio", 0.1}, {"groups", 5}, {"window_scale", 1e-7}}},
        Spec{"batch-loss", {{"alpha", 1.0 / 3.0}, {"initial_score", -2.5}}}}) {
    EXPECT_EQ(parse_spec(to_text(spec)), spec) << to_text(spec);
  }
  const Spec complete = make_scorer({"batch-loss"}, 1)->spec();
  EXPECT_EQ(to_text(complete), "batch-loss:alpha=0.7,initial_score=first-batch-loss");
  EXPECT_TRUE(std::isnan(parse_spec(to_text(complete)).options.at("initial_score")));
}

TEST(SpecText, TakesTheSpellingsOfTheCommandLine) {
  EXPECT_EQ(parse_spec("seta:window-scale=+0.5,prune_ratio=.25"),
            (Spec{"seta", {{"window_scale", 0.5}, {"prune_ratio", 0.25}}}));
  EXPECT_EQ(parse_spec("batch-loss:init=zero"), (Spec{"batch-loss", {{"initial_score", 0.0}}}));
}

TEST(SpecText, RefusesValuesThatAreNoNumbersInTheSpellingItWasGiven) {
  const auto refused = [](std::string_view option, std::string_view text, const char* message) {
    EXPECT_THAT([&] { parse_option_value(option, text); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(message)));
  };
  refused("--alpha", "0.7x", "--alpha must be a number, got 0.7x");
  refused("alpha", "nan", "alpha must be a number, got nan");
  refused("alpha", "", "alpha must be a number, got ");
  refused("--init", "one", "--init must be zero, first-batch-loss or a number, got one");
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

}  // namespace
}  // namespace tamis
