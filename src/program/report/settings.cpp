// The settings of the runs of a comparison: what they share, and where they differ.
#include <algorithm>
#include <array>
#include <string_view>

#include "program/report/comparison.h"

namespace tamis::program {

namespace {

using nlohmann::json;

constexpr std::array<const char*, 5> kGroups = {"data", "model", "training", "pruning",
                                                "environment"};
constexpr std::array<std::string_view, 3> kNotSettings = {"training.seed", "pruning.seed",
                                                          "environment.date"};

// "/score/options/alpha" in the group pruning as pruning.score.options.alpha.
std::string dotted(std::string_view group, std::string pointer) {
  std::replace(pointer.begin(), pointer.end(), '/', '.');
  return std::string(group) + pointer;
}

// The settings of one group of one run; none for a group that is not there.
json flat_group(const Run& run, const char* group) {
  const auto found = run.config.find(group);
  return found != run.config.end() && found->is_object() ? found->flatten() : json::object();
}

// Keys in the order in which they appear.
std::vector<std::string> pointers_of(const Comparison& comparison, const char* group) {
  std::vector<std::string> pointers;
  for (const MethodRuns& method : comparison.methods) {
    for (const Run& run : method.runs) {
      const json settings = flat_group(run, group);
      for (const auto& [pointer, value] : settings.items()) {
        if (std::count(pointers.begin(), pointers.end(), pointer) == 0) pointers.push_back(pointer);
      }
    }
  }
  std::sort(pointers.begin(), pointers.end());
  return pointers;
}

// The value that the runs of a method have, an array if they have several, null if they have none.
json value_of(const MethodRuns& method, const char* group, const std::string& pointer) {
  json values = json::array();
  for (const Run& run : method.runs) {
    const json settings = flat_group(run, group);
    json value = settings.contains(pointer) ? settings[pointer] : json();
    if (std::count(values.begin(), values.end(), value) == 0) values.push_back(std::move(value));
  }
  return values.size() == 1 ? values.front() : values;
}

}  // namespace

std::vector<Setting> settings_of(const Comparison& comparison) {
  std::vector<Setting> settings;
  for (const char* group : kGroups) {
    for (const std::string& pointer : pointers_of(comparison, group)) {
      Setting setting{.key = dotted(group, pointer), .values = {}};
      if (std::count(kNotSettings.begin(), kNotSettings.end(), setting.key) > 0) continue;
      for (const MethodRuns& method : comparison.methods) {
        if (method.runs.empty()) continue;
        setting.values.emplace_back(method.label, value_of(method, group, pointer));
      }
      const auto is_first = [&](const auto& value) {
        return value.second == setting.values.front().second;
      };
      if (std::all_of(setting.values.begin(), setting.values.end(), is_first)) {
        setting.values = {{"", setting.values.front().second}};
      }
      // An empty list of options.
      if (setting.is_common() && setting.values.front().second.is_null()) continue;
      settings.push_back(std::move(setting));
    }
  }
  return settings;
}

}  // namespace tamis::program
