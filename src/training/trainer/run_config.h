// RunConfig: everything that decides how a run goes, and its form in config.json.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "runs/json.h"
#include "tamis/method.h"

namespace tamis::training {

using runs::Json;

struct DataConfig {
  std::string name = "fashion-mnist";   // as load_data() understands it
  std::filesystem::path data_dir = {};  // empty: where load_data() looks by itself
  std::uint64_t limit = 0;              // training samples to use, spread evenly; 0: all
  std::uint64_t test_limit = 0;         // the same for the test samples
  // Of the training samples only, chosen by the run's seed; see disturb().
  double label_noise = 0.0;  // share of the labels that are made wrong, in [0, 1]
  double imbalance = 1.0;    // size of the last class as a share of its own, in (0, 1]
  double copies = 0.0;       // share of the samples that become copies of a few others, in [0, 1)

  friend bool operator==(const DataConfig&, const DataConfig&) = default;
};

struct ModelConfig {
  std::string name = "small-cnn";  // as make_model() understands it
  double width = 1.0;              // multiplies the channels of every layer

  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

enum class OptimizerKind { sgd, adamw };
enum class ScheduleKind { one_cycle, cosine, constant };
enum class AugmentKind { none, crop, crop_flip, translate_flip };
enum class Precision { float32, bfloat16 };

// Names in the order of the enumerators.
inline constexpr std::array<std::string_view, 2> kOptimizerNames = {"sgd", "adamw"};
inline constexpr std::array<std::string_view, 3> kScheduleNames = {"one-cycle", "cosine",
                                                                   "constant"};
inline constexpr std::array<std::string_view, 4> kAugmentNames = {"none", "crop", "crop-flip",
                                                                  "translate-flip"};
inline constexpr std::array<std::string_view, 2> kPrecisionNames = {"float32", "bfloat16"};

struct TrainingConfig {
  std::uint64_t epochs = 16;
  std::uint64_t batch_size = 128;
  OptimizerKind optimizer = OptimizerKind::sgd;
  double learning_rate = 0.1;  // the highest one of the schedule
  ScheduleKind schedule = ScheduleKind::one_cycle;
  // Share of the run in which the learning rate rises (one-cycle), or rises linearly (cosine).
  double warmup = 0.3;
  double momentum = 0.9;  // Nesterov's; beta1 of AdamW
  double weight_decay = 5e-4;
  double label_smoothing = 0.0;
  AugmentKind augment = AugmentKind::none;
  bool test_flip = false;  // tests also look at the mirrored image, and average
  std::uint64_t seed = 0;
  std::uint64_t threads = 1;  // a resumed run is exact only with as many as it began with
  // As ModelOptions has them. The defaults are what runs did before they had a choice; the program
  // takes those of choose_for_processor().
  Precision precision = Precision::float32;
  bool channels_last = true;

  friend bool operator==(const TrainingConfig&, const TrainingConfig&) = default;
};

struct RunConfig {
  DataConfig data;
  ModelConfig model;
  TrainingConfig training;
  Method method;
  // Epochs of a run on the full data, where this one saves by training fewer; 0: as many.
  std::uint64_t full_epochs = 0;
  // Samples whose per-sample losses are recorded, see Recorder; 0: no recording.
  std::uint64_t num_recorded = 0;
  // Pictures of the hardest, the easiest and the most forgotten samples, of each; 0: no gallery.
  std::uint64_t num_pictures = 0;

  friend bool operator==(const RunConfig&, const RunConfig&) = default;
};

// Sets the optimiser, and with it the learning rate and the weight decay that usually go with it:
// 0.1 and 5e-4 for SGD, 0.002 and 0.01 for AdamW.
void choose_optimizer(TrainingConfig& config, OptimizerKind optimizer);
// Sets the schedule and the usual warm-up: 0.3 for one-cycle, 0.05 for cosine.
void choose_schedule(TrainingConfig& config, ScheduleKind schedule);

// Sets precision and layout to the fastest for this processor and this build of torch: bfloat16
// where the processor multiplies it (AVX512-BF16), channels last where torch has oneDNN.
void choose_for_processor(TrainingConfig& config);

std::string_view precision_name(const TrainingConfig& config);

// What a run found when it started; part of config.json, but no choice of the user's.
struct RunFacts {
  std::uint64_t num_train = 0;
  std::uint64_t num_test = 0;
  std::int64_t num_classes = 0;
  std::int64_t num_parameters = 0;
  Json environment;
};

// Throws std::invalid_argument if a number is out of range. Names of data and models are checked
// where they are used.
void validate(const RunConfig& config);

// The form of config.json, see docs/run_folder.md.
Json to_json(const RunConfig& config, const RunFacts& facts);
// The parts that a comparison shares between its runs: no method, no seed.
Json shared_to_json(const RunConfig& config);
Json to_json(const Method& method);
// What comparisons had before these settings existed; their files do not name them.
Json former_settings();

// The way back. Throws std::runtime_error that begins with `source` if the JSON is not of that
// form, which is that of runs::read_config().
RunConfig config_from_json(const Json& json, const std::string& source);
RunConfig shared_from_json(const Json& json, const std::string& source);
Method method_from_json(const Json& json, const std::string& name, const std::string& source);
RunFacts facts_from_json(const Json& json, const std::string& source);

// Of the run in a folder, which may be in use by another process.
RunConfig read_run_config(const std::filesystem::path& folder);

// Tamis, LibTorch, processor, date and commit. See config.json.
Json describe_environment();

}  // namespace tamis::training
