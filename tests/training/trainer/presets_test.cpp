#include "training/trainer/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "tamis/method.h"

namespace tamis::training::presets_test {

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

}  // namespace tamis::training::presets_test
