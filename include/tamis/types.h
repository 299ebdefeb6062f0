// Types shared by the whole library.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tamis {

// Position of a sample in the data set, counted from 0.
using SampleIndex = std::int64_t;

// Options by name. Every option of every score and policy is a number, so that one
// representation serves C++, the command line, Python and state files.
using OptionMap = std::map<std::string, double, std::less<>>;

// A registered score or policy by name, with the options that differ from their defaults.
struct Spec {
  std::string name;
  OptionMap options = {};

  friend bool operator==(const Spec&, const Spec&) = default;
};

}  // namespace tamis
