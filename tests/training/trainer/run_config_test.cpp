#include "training/trainer/run_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>

#include "runs/run.h"
#include "runs/seal.h"
#include "support/scratch_folder.h"
#include "tamis/registry.h"

namespace tamis::training::run_config_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

RunConfig random_config(std::mt19937_64& random) {
  const auto share = [&] { return std::uniform_real_distribution<double>(0.01, 0.99)(random); };
  const auto methods = registered_methods();
  RunConfig config;
  config.data = {.name = "cifar10",
                 .data_dir = "some folder/ä",
                 .limit = random() % 1000,
                 .test_limit = random(),
                 .label_noise = share(),
                 .imbalance = share(),
                 .copies = share()};
  config.model = {.name = "resnet18", .width = share()};
  config.training = {.epochs = 1 + random() % 1000,
                     .batch_size = 1 + random() % 1000,
                     .optimizer = static_cast<OptimizerKind>(random() % 2),
                     .learning_rate = share(),
                     .schedule = static_cast<ScheduleKind>(random() % 3),
                     .warmup = share(),
                     .momentum = share(),
                     .weight_decay = share(),
                     .label_smoothing = share(),
                     .augment = static_cast<AugmentKind>(random() % 4),
                     .test_flip = random() % 2 == 0,
                     .seed = random(),
                     .threads = 1 + random() % 8,
                     .precision = static_cast<Precision>(random() % 2),
                     .channels_last = random() % 2 == 0};
  config.method = parse_method(methods[random() % methods.size()].name);
  config.method.delta = share();
  config.method.homogeneous = random() % 2 == 0;
  config.method.min_per_class = share();
  if (random() % 2 == 0) config.method.target_prune = share();
  if (random() % 2 == 0) config.full_epochs = config.training.epochs + 5;
  return config;
}

const RunFacts kFacts{.num_train = 50000,
                      .num_test = 10000,
                      .num_classes = 10,
                      .num_parameters = 123,
                      .environment = describe_environment()};

TEST(RunConfig, SurvivesJsonExactly) {
  std::mt19937_64 random(7);
  for (int repeat = 0; repeat < 200; ++repeat) {
    const RunConfig config = random_config(random);
    const std::string text = to_json(config, kFacts).dump();
    EXPECT_EQ(config_from_json(Json::parse(text), "config.json"), config) << text;
  }
}

TEST(RunConfig, IsReadWithoutTheOptionsThatOlderVersionsDidNotHave) {
  std::mt19937_64 random(9);
  RunConfig config = random_config(random);
  config.data.label_noise = 0.0;
  config.data.imbalance = 1.0;
  config.data.copies = 0.0;
  config.training.test_flip = false;
  config.method.homogeneous = false;
  config.method.min_per_class = 0.0;
  config.method.target_prune.reset();
  config.training.precision = Precision::float32;
  config.training.channels_last = true;
  Json json = to_json(config, kFacts);
  for (const char* key : {"label_noise", "imbalance", "copies"}) json["data"].erase(key);
  for (const char* key : {"homogeneous", "min_per_class", "target_prune"})
    json["method"].erase(key);
  for (const char* key : {"precision", "channels_last", "test_flip"}) json["training"].erase(key);
  EXPECT_EQ(config_from_json(json, "config.json"), config);
}

TEST(RunConfig, IsTheOneThatRunFoldersAskFor) {
  const test::ScratchFolder scratch;
  std::mt19937_64 random(10);
  const RunConfig config = random_config(random);
  runs::write_sealed_json(scratch / "config.json", to_json(config, kFacts));
  EXPECT_EQ(runs::read_run(scratch.path()).num_epochs, config.training.epochs);
  EXPECT_EQ(read_run_config(scratch.path()), config);
}

TEST(RunConfig, SharedPartLeavesOutMethodAndSeedOnly) {
  std::mt19937_64 random(8);
  RunConfig config = random_config(random);
  const Json json = shared_to_json(config);
  EXPECT_FALSE(json["training"].contains("seed"));
  config.method = {};
  config.training.seed = 0;
  EXPECT_EQ(shared_from_json(json, "compare.json"), config);
}

TEST(RunConfig, HasTheFieldsThatOtherToolsRead) {
  const Json json = to_json(
      RunConfig{.data = {}, .model = {}, .training = {}, .method = parse_method("bls-infobatch")},
      kFacts);
  EXPECT_EQ(json["format"], "tamis-run");
  EXPECT_EQ(json["format_version"], 3);
  EXPECT_EQ(json["method"]["name"], "bls-infobatch");
  EXPECT_EQ(json["seed"], 0);
  EXPECT_EQ(json["epochs"], 16);
  EXPECT_EQ(json["metrics"][0]["name"], "test_accuracy");
  EXPECT_EQ(json["data"]["num_train"], 50000);
  EXPECT_EQ(json["data"]["label_noise"], 0);
  EXPECT_EQ(json["data"]["imbalance"], 1);
  EXPECT_EQ(json["model"]["parameters"], 123);
  EXPECT_EQ(json["training"]["precision"], "float32");
  EXPECT_EQ(json["training"]["channels_last"], true);
  EXPECT_EQ(json["method"]["score"]["options"]["alpha"], 0.7);
  EXPECT_EQ(json["method"]["score"]["options"]["initial_score"], "first-batch-loss");
  EXPECT_EQ(json["method"]["policy"]["name"], "infobatch");
  EXPECT_EQ(json["method"]["delta"], 0.875);
  for (const char* key : {"tamis", "torch", "cpu", "cores", "date", "commit"}) {
    EXPECT_TRUE(json["environment"].contains(key)) << key;
  }
}

TEST(RunConfig, RefusesNumbersOutOfRangeByName) {
  const auto refused = [](const char* name, auto change) {
    RunConfig config;
    change(config);
    EXPECT_THAT([&] { validate(config); }, ThrowsMessage<std::invalid_argument>(HasSubstr(name)));
  };
  refused("epochs", [](RunConfig& c) { c.training.epochs = 0; });
  refused("batch_size", [](RunConfig& c) { c.training.batch_size = 0; });
  refused("learning_rate", [](RunConfig& c) { c.training.learning_rate = 0.0; });
  refused("momentum", [](RunConfig& c) { c.training.momentum = 1.0; });
  refused("weight_decay", [](RunConfig& c) { c.training.weight_decay = -1.0; });
  refused("label_smoothing", [](RunConfig& c) { c.training.label_smoothing = 1.0; });
  refused("warmup", [](RunConfig& c) { c.training.warmup = 1.5; });
  refused("threads", [](RunConfig& c) { c.training.threads = 0; });
  refused("width", [](RunConfig& c) { c.model.width = 0.0; });
  EXPECT_NO_THROW(validate(RunConfig{}));
}

TEST(RunConfig, SaysWhichFileIsNotAsItShouldBe) {
  const auto refused = [](Json json, const char* message) {
    EXPECT_THAT([&] { config_from_json(json, "RUN/config.json"); },
                ThrowsMessage<std::runtime_error>(
                    ::testing::AllOf(HasSubstr("RUN/config.json"), HasSubstr(message))));
  };
  const Json good = to_json(
      RunConfig{.data = {}, .model = {}, .training = {}, .method = parse_method("full")}, kFacts);
  refused(Json::object(), "training");
  Json json = good;
  json.erase("epochs");
  refused(json, "epochs");
  json = good;
  json["epochs"] = 0;
  refused(json, "epochs");
  json = good;
  json["training"]["optimizer"] = "lamb";
  refused(json, "lamb");
  json = good;
  json["training"]["precision"] = "float8";
  refused(json, "float8");
}

// What the kernel says, which asks the processor by another way.
TEST(RunConfig, TheProcessorDecidesOnPrecision) {
  std::ifstream info("/proc/cpuinfo");
  const std::string text{std::istreambuf_iterator<char>(info), {}};
  TrainingConfig config;
  choose_for_processor(config);
  const bool has_bfloat16 = text.find(" avx512_bf16") != std::string::npos;
  EXPECT_EQ(config.precision, has_bfloat16 ? Precision::bfloat16 : Precision::float32);
  EXPECT_TRUE(config.channels_last);  // every wheel of torch has oneDNN
}

TEST(RunConfig, ChoosingAnOptimizerSetsWhatUsuallyGoesWithIt) {
  TrainingConfig config;
  choose_optimizer(config, OptimizerKind::adamw);
  choose_schedule(config, ScheduleKind::cosine);
  EXPECT_EQ(config.learning_rate, 0.002);
  EXPECT_EQ(config.weight_decay, 0.01);
  EXPECT_EQ(config.warmup, 0.05);
  choose_optimizer(config, OptimizerKind::sgd);
  choose_schedule(config, ScheduleKind::one_cycle);
  EXPECT_EQ(config, TrainingConfig{});
}

}  // namespace tamis::training::run_config_test
