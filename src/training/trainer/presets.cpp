#include "training/trainer/presets.h"

#include "base/check.h"

namespace tamis::training {

namespace {

// Of the papers' CIFAR experiments: InfoBatch 0.5; SeTa 0.1, 5 groups, window 0.9; alpha 0.7;
// pruning in the first 87.5 % of the epochs.
MethodOptions authors_options() {
  return {.common = {},
          .by_name = {
              {"batch-loss", {{"alpha", 0.7}}},
              {"infobatch", {{"prune_ratio", 0.5}, {"delta", 0.875}}},
              {"seta",
               {{"prune_ratio", 0.1}, {"groups", 5.0}, {"window_scale", 0.9}, {"delta", 0.875}}}}};
}

Preset make_preset(std::string_view name, std::string_view summary) {
  return {.name = name,
          .summary = summary,
          .config = {},
          .options = authors_options(),
          .methods = {"full", "random-dynamic", "infobatch", "seta", "bls-infobatch", "bls-seta"},
          .seeds = {0, 1, 2}};
}

Preset cifar10() {
  Preset preset = make_preset("cifar10", "CIFAR-10, small CNN, random crops and flips");
  preset.config.data.name = "cifar10";
  preset.config.training.augment = AugmentKind::crop_flip;
  return preset;
}

// Learning rate, weight decay and batch size follow from those of airbench94 (batches of 1024,
// momentum 0.85, rate 1.5, decay 0.0013) by keeping rate / ((1 - momentum) batch size).
Preset cifar10_fast() {
  Preset preset = make_preset(
      "cifar10-fast", "CIFAR-10, a strong small network in 21 epochs; --width 1 for a quicker one");
  preset.config.data.name = "cifar10";
  preset.config.model = {.name = "fast-cnn", .width = 2.0};
  preset.config.training = {.epochs = 21,
                            .batch_size = 256,
                            .learning_rate = 0.25,
                            .schedule = ScheduleKind::one_cycle,
                            .warmup = 0.23,
                            .momentum = 0.9,
                            .weight_decay = 1.33e-3,
                            .label_smoothing = 0.2,
                            .augment = AugmentKind::translate_flip,
                            .test_flip = true};
  return preset;
}

Preset cifar10_resnet() {
  Preset preset = cifar10_fast();
  preset.name = "cifar10-resnet";
  preset.summary = "CIFAR-10, ResNet-18 at a quarter of its width, 30 epochs";
  preset.config.model = {.name = "resnet18", .width = 0.25};
  preset.config.training.epochs = 30;
  preset.config.training.learning_rate = 0.2;
  preset.config.training.weight_decay = 5e-4;
  preset.config.training.label_smoothing = 0.1;
  return preset;
}

// LARS, which InfoBatch's authors use for some of their tables, is replaced by SGD.
Preset paper(std::string_view name, std::string_view summary, const std::string& data) {
  Preset preset = make_preset(name, summary);
  preset.config.data.name = data;
  preset.config.model.name = "resnet18";
  preset.config.training = {.epochs = 200,
                            .batch_size = 128,
                            .learning_rate = 0.1,
                            .schedule = ScheduleKind::one_cycle,
                            .warmup = 0.3,
                            .momentum = 0.9,
                            .weight_decay = 5e-4,
                            .label_smoothing = 0.1,
                            .augment = AugmentKind::crop_flip};
  return preset;
}

std::vector<Preset> make_presets() {
  return {make_preset("quick", "Fashion-MNIST, small CNN; minutes on two cores"),
          make_preset("fashion-mnist", "Fashion-MNIST, small CNN, longer and with more seeds"),
          cifar10(),
          cifar10_fast(),
          cifar10_resnet(),
          paper("paper-cifar10", "the authors' recipe: CIFAR-10, ResNet-18, 200 epochs; takes days",
                "cifar10"),
          paper("paper-cifar100",
                "the authors' recipe: CIFAR-100, ResNet-18, 200 epochs; takes days", "cifar100")};
}

}  // namespace

std::span<const Preset> registered_presets() {
  static const std::vector<Preset> presets = make_presets();
  return presets;
}

const Preset& find_preset(std::string_view name) {
  return detail::find_named(registered_presets(), "preset", name);
}

}  // namespace tamis::training
