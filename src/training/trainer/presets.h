// Presets: complete settings under a name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/method.h"
#include "training/trainer/run_config.h"

namespace tamis::training {

struct Preset {
  std::string_view name;
  std::string_view summary;
  RunConfig config;  // without a method
  MethodOptions options;
  // For comparisons.
  std::vector<std::string> methods;
  std::vector<std::uint64_t> seeds;
};

// All of them, in the order in which help texts list them. The first one is the default of `tamis
// compare`.
std::span<const Preset> registered_presets();

// Throws std::invalid_argument, naming what exists, if there is no such name.
const Preset& find_preset(std::string_view name);

}  // namespace tamis::training
