// Expected figures, see tests/golden/README.md for where they come from.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "paths.h"

namespace tamis::test {

inline nlohmann::json load_golden(const std::string& name) {
  const std::string path = std::string(TAMIS_GOLDEN_DIR) + "/" + name;
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot open " + path);
  return nlohmann::json::parse(file);
}

}  // namespace tamis::test
