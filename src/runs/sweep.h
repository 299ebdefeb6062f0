// Sweep: one option of a method at several values, everything else the same.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runs/json.h"

namespace tamis::runs {

inline constexpr const char* kSweepFile = "sweep.json";

struct Sweep {
  std::string method;               // "bls-infobatch"
  std::string option;               // "alpha"
  std::vector<double> values = {};  // ascending, each once

  // The method with this value: "bls-infobatch:alpha=0.5".
  std::string method_name(double value) const;
};

// With the values of the sweep that the folder holds already. Changes nothing there. Throws
// std::runtime_error if that one is of another method or option.
Sweep extend_sweep(const std::filesystem::path& folder, Sweep sweep);

// Writes sweep.json into the folder of a comparison. Throws std::runtime_error.
void write_sweep(const std::filesystem::path& folder, const Sweep& sweep);
// Throws std::runtime_error if there is none or it is damaged.
Sweep read_sweep(const std::filesystem::path& folder);

Json to_json(const Sweep& sweep);

}  // namespace tamis::runs
