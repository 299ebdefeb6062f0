#include "program/train/training_flags.h"

#include <fmt/format.h>
#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <thread>
#include <utility>

#include "program/shared/arguments.h"
#include "tamis/method.h"
#include "tamis/registry.h"
#include "training/data/known_data.h"
#include "training/models/model_names.h"
#include "training/trainer/budget.h"
#include "training/trainer/team.h"

namespace tamis::program {

namespace {

using training::RunConfig;

constexpr std::string_view kData = "Data and model";
constexpr std::string_view kTraining = "Training";
constexpr std::string_view kPruning = "Options of scores and policies";
constexpr std::array<std::string_view, 2> kSwitch = {"off", "on"};

// Those that this process may use. std::thread counts all of the machine with some C libraries,
// whatever taskset or a container allow; it is asked only if there are more than a set holds.
std::size_t num_processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const bool is_known = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  return is_known ? static_cast<std::size_t>(CPU_COUNT(&allowed))
                  : std::thread::hardware_concurrency();
}

template <typename Names>
std::string join(const Names& names, std::string_view separator = ", ") {
  std::string text;
  for (const auto& name : names) text += fmt::format("{}{}", text.empty() ? "" : separator, name);
  return text;
}

// Place of `text` in `names`.
template <typename Names>
std::size_t find_name(const std::string& flag, const std::string& text, const Names& names) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) {
    throw UsageError(fmt::format("{} must be one of {}, got {}", flag, join(names), text));
  }
  return static_cast<std::size_t>(found - names.begin());
}

double to_number(const std::string& flag, const std::string& text) {
  const auto number = parse_number(text);
  if (!number || !std::isfinite(*number)) {
    throw UsageError(fmt::format("{} must be a number, got {}", flag, text));
  }
  return *number;
}

std::uint64_t to_count(const std::string& flag, std::string text) {
  std::erase(text, '_');
  const auto number = parse_number(text);
  if (!number || !(*number >= 0.0 && *number <= 0x1p53) || *number != std::floor(*number)) {
    throw UsageError(fmt::format("{} must be a whole number of at least 0, got {}", flag, text));
  }
  return static_cast<std::uint64_t>(*number);
}

// What an option does, as the first says it that has it, and which scores or policies have it.
template <typename Info>
void collect_help(std::span<const Info> all, std::map<std::string, std::string>& helps) {
  std::map<std::string, std::vector<std::string>> owners;
  std::map<std::string, std::string_view> texts;
  for (const Info& info : all) {
    for (const OptionInfo& option : info.options) {
      const std::string name(option.name);
      owners[name].push_back(
          fmt::format("{} {}", info.name, format_option_value(name, option.default_value)));
      texts.emplace(name, option.help);
    }
  }
  for (const auto& [name, who] : owners) {
    std::string& help = helps[name];
    help += fmt::format("{}{} (default: {})", help.empty() ? "" : "; ", texts[name], join(who));
  }
}

std::string describe(std::string_view title,
                     const std::vector<std::pair<std::string_view, std::string_view>>& entries) {
  std::size_t width = 0;
  for (const auto& [name, summary] : entries) width = std::max(width, name.size());
  std::string text = fmt::format("{}:\n", title);
  for (const auto& [name, summary] : entries) {
    text += fmt::format("  {:<{}}  {}\n", name, width, summary);
  }
  return text;
}

}  // namespace

void TrainingFlags::add_count(CLI::App& command, const std::string& flag, const std::string& help,
                              std::string_view group,
                              std::function<void(TrainingChoice&, std::uint64_t)> set) {
  command
      .add_option_function<std::string>(
          flag,
          [this, flag, set = std::move(set)](const std::string& text) {
            const std::uint64_t count = to_count(flag, text);
            changes_.push_back([set, count](TrainingChoice& choice) { set(choice, count); });
          },
          help)
      ->type_name("COUNT")
      ->group(std::string(group));
}

void TrainingFlags::add_number(CLI::App& command, const std::string& flag, const std::string& help,
                               std::string_view group,
                               std::function<void(TrainingChoice&, double)> set) {
  command
      .add_option_function<std::string>(
          flag,
          [this, flag, set = std::move(set)](const std::string& text) {
            const double number = to_number(flag, text);
            changes_.push_back([set, number](TrainingChoice& choice) { set(choice, number); });
          },
          help)
      ->type_name("NUMBER")
      ->group(std::string(group));
}

void TrainingFlags::add_name(CLI::App& command, const std::string& flag, const std::string& help,
                             std::string_view group,
                             std::function<void(TrainingChoice&, std::string)> set) {
  command
      .add_option_function<std::string>(
          flag,
          [this, set = std::move(set)](const std::string& text) {
            changes_.push_back([set, text](TrainingChoice& choice) { set(choice, text); });
          },
          help)
      ->type_name("NAME")
      ->group(std::string(group));
}

void TrainingFlags::add_data(CLI::App& command) {
  add_name(command, "--data", join(training::data_names()) + " (default: fashion-mnist)", kData,
           [](TrainingChoice& c, const std::string& name) { c.config.data.name = name; });
  command
      .add_option_function<std::string>(
          "--data-dir",
          [this](const std::string& text) {
            if (text.empty()) throw UsageError("--data-dir must not be empty");
            // Absolute, so that a run can be resumed from another folder.
            const auto path = std::filesystem::absolute(text);
            changes_.push_back([path](TrainingChoice& c) { c.config.data.data_dir = path; });
          },
          "where the files are (default: ./data, then the system's own folder)")
      ->type_name("FOLDER")
      ->group(std::string(kData));
  add_count(command, "--limit", "number of training samples to use, evenly spaced; 0: all", kData,
            [](TrainingChoice& c, std::uint64_t n) { c.config.data.limit = n; });
  add_count(command, "--test-limit", "number of test samples to use; 0: all", kData,
            [](TrainingChoice& c, std::uint64_t n) { c.config.data.test_limit = n; });
  add_number(command, "--label-noise",
             "share of the training labels that are replaced by wrong ones (default: 0)", kData,
             [](TrainingChoice& c, double x) { c.config.data.label_noise = x; });
  add_number(command, "--imbalance",
             "share of the last class to keep; the classes before it lose less (default: 1)", kData,
             [](TrainingChoice& c, double x) { c.config.data.imbalance = x; });
  add_number(command, "--copies",
             "share of the training samples that are replaced by copies of 300 others (default: 0)",
             kData, [](TrainingChoice& c, double x) { c.config.data.copies = x; });
  add_name(command, "--model", join(training::model_names()) + " (default: small-cnn)", kData,
           [](TrainingChoice& c, const std::string& name) { c.config.model.name = name; });
  add_number(command, "--width", "factor for the channels of every layer (default: 1)", kData,
             [](TrainingChoice& c, double x) { c.config.model.width = x; });
}

template <typename Names, typename Kind>
void TrainingFlags::add_kind(CLI::App& command, const std::string& flag, const std::string& help,
                             const Names& names, void (*set)(training::TrainingConfig&, Kind)) {
  command
      .add_option_function<std::string>(
          flag,
          [this, flag, &names, set](const std::string& text) {
            const auto kind = static_cast<Kind>(find_name(flag, text, names));
            kinds_.push_back([kind, set](TrainingChoice& c) { set(c.config.training, kind); });
          },
          help)
      ->type_name("NAME")
      ->group(std::string(kTraining));
}

void TrainingFlags::add_training(CLI::App& command) {
  add_count(command, "--epochs", "passes over the data (default: 16)", kTraining,
            [](TrainingChoice& c, std::uint64_t n) { c.config.training.epochs = n; });
  add_count(command, "--batch-size", "samples per step (default: 128)", kTraining,
            [](TrainingChoice& c, std::uint64_t n) { c.config.training.batch_size = n; });
  add_kind(command, "--optimizer", "sgd (with Nesterov momentum) or adamw (default: sgd)",
           training::kOptimizerNames, training::choose_optimizer);
  add_number(command, "--learning-rate",
             "the peak of the schedule (default: 0.1 for sgd, 0.002 for adamw)", kTraining,
             [](TrainingChoice& c, double x) { c.config.training.learning_rate = x; });
  add_kind(command, "--schedule",
           "of the learning rate: one-cycle, cosine or constant (default: one-cycle)",
           training::kScheduleNames, training::choose_schedule);
  add_number(command, "--warmup",
             "share of the run in which the learning rate rises (default: 0.3 for one-cycle,\n"
             "0.05 for cosine)",
             kTraining, [](TrainingChoice& c, double x) { c.config.training.warmup = x; });
  add_number(command, "--momentum", "momentum of sgd, beta1 of adamw (default: 0.9)", kTraining,
             [](TrainingChoice& c, double x) { c.config.training.momentum = x; });
  add_number(command, "--weight-decay", "L2 penalty (default: 5e-4 for sgd, 0.01 for adamw)",
             kTraining, [](TrainingChoice& c, double x) { c.config.training.weight_decay = x; });
  add_number(command, "--label-smoothing",
             "share of a label that is spread over all classes (default: 0)", kTraining,
             [](TrainingChoice& c, double x) { c.config.training.label_smoothing = x; });
  add_name(command, "--augment",
           "random changes of the images: none, crop, crop-flip, or translate-flip, which moves "
           "them by\ntwo pixels and mirrors the border (default: none)",
           kTraining, [](TrainingChoice& c, const std::string& text) {
             c.config.training.augment = static_cast<training::AugmentKind>(
                 find_name("--augment", text, training::kAugmentNames));
           });
  add_name(command, "--test-flip",
           "on: tests average over the image and its mirror image (default: off)", kTraining,
           [](TrainingChoice& c, const std::string& text) {
             c.config.training.test_flip = find_name("--test-flip", text, kSwitch) == 1;
           });
  add_name(command, "--precision",
           "of convolutions and linear layers: float32 or bfloat16 (default: bfloat16 where the\n"
           "processor multiplies it, see docs/training.md)",
           kTraining, [](TrainingChoice& c, const std::string& text) {
             c.config.training.precision = static_cast<training::Precision>(
                 find_name("--precision", text, training::kPrecisionNames));
           });
  add_name(
      command, "--channels-last",
      "layout of the feature maps, on or off; fast with oneDNN (default: on where torch has it)",
      kTraining, [](TrainingChoice& c, const std::string& text) {
        c.config.training.channels_last = find_name("--channels-last", text, kSwitch) == 1;
      });
  add_count(command, "--threads", "processor cores for each process (default: all it may use)",
            kTraining, [](TrainingChoice& c, std::uint64_t n) { c.config.training.threads = n; });
}

void TrainingFlags::add_pruning(CLI::App& command) {
  std::map<std::string, std::string> helps;
  collect_help(registered_policies(), helps);
  collect_help(registered_scorers(), helps);
  helps["delta"] =
      "share of the epochs that are pruned; later epochs use all data (default: infobatch and seta "
      "0.875,\nothers 1)";
  helps["min_per_class"] =
      "least share of every class in each epoch; pruned samples are put back (default: 0)";
  helps["target_prune"] =
      "share of the whole run to prune: sets the prune ratio of every epoch (not for full and "
      "random)";
  const auto set_common = [this](const std::string& name, double value) {
    changes_.push_back([name, value](TrainingChoice& c) {
      c.options.common[name] = value;
      // A flag wins over what the preset says for one score or policy.
      for (auto& [part, options] : c.options.by_name) options.erase(name);
    });
  };
  command
      .add_flag_callback(
          "--homogeneous", [set_common] { set_common("homogeneous", 1.0); },
          "put samples of one weight into each batch, so that its mean loss is weighted exactly")
      ->group(std::string(kPruning));
  for (const auto& [option, help] : helps) {
    const std::string flag = option_flag(option);
    command
        .add_option_function<std::string>(
            flag,
            [set_common, flag, name = option](const std::string& text) {
              set_common(name, as_usage([&] { return parse_option_value(flag, text); }));
            },
            help)
        ->type_name(option == "initial_score" ? "zero|first-batch-loss|NUMBER" : "NUMBER")
        ->group(std::string(kPruning));
  }
}

void TrainingFlags::add(CLI::App& command, bool with_seed) {
  command
      .add_option_function<std::string>(
          "--preset",
          [this](const std::string& name) {
            preset_ = as_usage([&] { return &training::find_preset(name); });
          },
          "start from these settings, see below; other flags override them")
      ->type_name("NAME");
  constexpr std::uint64_t kPictures = 24;
  add_optional_count(command, "--gallery", num_pictures_, kPictures,
                     "keep pictures of the COUNT hardest, easiest and most forgotten training "
                     "samples for\ntamis report (24 without a number, at most 100)");
  add_data(command);
  add_training(command);
  if (with_seed) {
    add_count(command, "--seed", "seed of all random choices (default: 0)", kTraining,
              [](TrainingChoice& c, std::uint64_t n) { c.config.training.seed = n; });
  }
  add_pruning(command);
}

TrainingChoice TrainingFlags::choose(const training::Preset* base) const {
  TrainingChoice choice;
  if (const training::Preset* const preset = preset_ != nullptr ? preset_ : base) {
    choice = {.config = preset->config, .options = preset->options};
  }
  // Not torch's own default, which takes two processors of a virtual machine for one.
  choice.config.training.threads =
      std::max<std::uint64_t>(1, num_processors() / training::num_processes_here());
  training::choose_for_processor(choice.config.training);
  for (const Change& change : kinds_) change(choice);
  for (const Change& change : changes_) change(choice);
  choice.config.num_pictures = num_pictures_;
  as_usage([&] {
    validate(choice.config);
    return 0;
  });
  // Before anything is loaded or any folder made.
  find_name("--data", choice.config.data.name, training::data_names());
  find_name("--model", choice.config.model.name, training::model_names());
  return choice;
}

std::string describe_methods() {
  std::vector<std::pair<std::string_view, std::string_view>> entries;
  for (const auto& method : registered_methods()) {
    entries.emplace_back(method.name, method.summary);
  }
  entries.emplace_back(
      training::kFewerEpochs,
      "all samples in fewer epochs, as --target-prune says: what pruning must beat");
  return describe("Methods", entries) +
         "  SCORE+POLICY is a method too, and options may follow: bls-seta:alpha=0.8,groups=7\n";
}

std::string describe_presets() {
  std::vector<std::pair<std::string_view, std::string_view>> entries;
  for (const auto& preset : training::registered_presets()) {
    entries.emplace_back(preset.name, preset.summary);
  }
  return describe("Presets", entries);
}

}  // namespace tamis::program
