// Tests that run once per entry of the registry.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tamis::test {

template <typename Infos>
std::vector<std::string> names_of(const Infos& registered) {
  std::vector<std::string> names;
  for (const auto& info : registered) names.emplace_back(info.name);
  return names;
}

inline std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace tamis::test
