// Sweep: one option of a method at several values, everything else the same.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runs/json.h"
#include "tamis/method.h"

namespace tamis::runs {

inline constexpr const char* kSweepFile = "sweep.json";

struct Sweep {
  std::string method;               // as parse_method() reads it: "bls-infobatch"
  std::string option;               // "alpha"
  std::vector<double> values = {};  // ascending, each once

  // The method with this value: "bls-infobatch:alpha=0.5".
  std::string method_name(double value) const;
};

// Reads "alpha=0.5,0.7,0.9". Throws std::invalid_argument if it is not of that form or has a value
// twice.
Sweep parse_sweep(std::string_view method, std::string_view text);

// One method per value. Throws std::invalid_argument if the method has no such option or a value is
// out of range.
std::vector<Method> sweep_methods(const Sweep& sweep, const MethodOptions& options);

// With the values of the sweep that the folder holds already. Changes nothing there. Throws
// std::runtime_error if that one is of another method or option.
Sweep extend_sweep(const std::filesystem::path& folder, Sweep sweep);

// Writes sweep.json into the folder of a comparison. Throws std::runtime_error.
void write_sweep(const std::filesystem::path& folder, const Sweep& sweep);
// Throws std::runtime_error if there is none or it is damaged.
Sweep read_sweep(const std::filesystem::path& folder);

Json to_json(const Sweep& sweep);

}  // namespace tamis::runs
