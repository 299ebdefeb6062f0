// The flags that `tamis train` and `tamis compare` share: data, model, training, pruning options.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/method.h"
#include "training/trainer/presets.h"
#include "training/trainer/run_config.h"

namespace CLI {
class App;
}

namespace tamis::program {

// What the user chose; the method is chosen apart.
struct TrainingChoice {
  training::RunConfig config;
  MethodOptions options;
};

// Flags that were given win over the preset, whatever their order. Must outlive the parsing.
class TrainingFlags {
 public:
  // `with_seed`: also --seed.
  void add(CLI::App& command, bool with_seed);

  // The chosen preset, or null.
  const training::Preset* preset() const { return preset_; }
  // True if any of these flags, a preset included, was given.
  bool is_any_given() const {
    return preset_ != nullptr || !kinds_.empty() || !changes_.empty() || num_pictures_ > 0;
  }

  // After parsing. `base` is what flags change if no preset was chosen. Throws UsageError for a
  // value out of range.
  TrainingChoice choose(const training::Preset* base = nullptr) const;

 private:
  using Change = std::function<void(TrainingChoice&)>;

  void add_data(CLI::App& command);
  void add_training(CLI::App& command);
  void add_pruning(CLI::App& command);
  void add_count(CLI::App& command, const std::string& flag, const std::string& help,
                 std::string_view group, std::function<void(TrainingChoice&, std::uint64_t)> set);
  void add_number(CLI::App& command, const std::string& flag, const std::string& help,
                  std::string_view group, std::function<void(TrainingChoice&, double)> set);
  void add_name(CLI::App& command, const std::string& flag, const std::string& help,
                std::string_view group, std::function<void(TrainingChoice&, std::string)> set);

  // A choice that sets the defaults of others.
  template <typename Names, typename Kind>
  void add_kind(CLI::App& command, const std::string& flag, const std::string& help,
                const Names& names, void (*set)(training::TrainingConfig&, Kind));

  const training::Preset* preset_ = nullptr;
  std::uint64_t num_pictures_ = 0;
  std::vector<Change> kinds_;  // optimiser and schedule, which set others' defaults; applied first
  std::vector<Change> changes_;  // all the rest
};

// Names and summaries for the end of a help text.
std::string describe_methods();
std::string describe_presets();

}  // namespace tamis::program
