// The settings of the runs of a comparison: what they share, and where they differ.
#include <algorithm>
#include <array>
#include <string_view>

#include "program/report/comparison.h"

namespace tamis::program {

namespace {

using runs::Json;
using runs::MethodRuns;
using runs::RunData;
using runs::RunTable;

constexpr std::array<std::string_view, 5> kGroups = {"data", "model", "training", "method",
                                                     "environment"};
constexpr std::array<std::string_view, 2> kNotSettings = {"method.name", "environment.date"};

// "/score/options/alpha" in the group method as method.score.options.alpha.
std::string dotted(std::string_view group, std::string pointer) {
  std::replace(pointer.begin(), pointer.end(), '/', '.');
  return std::string(group) + pointer;
}

// The settings of one group of one run; none for a group that is not there.
Json flat_group(const RunData& run, const std::string& group) {
  Json settings = run.config.value(group, Json::object());
  if (group == "training") settings["epochs"] = run.num_epochs;
  return settings.is_object() ? settings.flatten() : Json::object();
}

// The usual groups, then those that only this training program has.
std::vector<std::string> groups_of(const RunTable& table) {
  std::vector<std::string> groups(kGroups.begin(), kGroups.end());
  for (const MethodRuns& method : table.methods) {
    for (const RunData& run : method.runs) {
      for (const auto& [key, value] : run.config.items()) {
        const bool is_known = std::count(groups.begin(), groups.end(), key) > 0;
        const bool is_output = key == "record" || key == "gallery";
        if (value.is_object() && !is_output && !is_known) groups.push_back(key);
      }
    }
  }
  return groups;
}

// Keys in the order in which they appear.
std::vector<std::string> pointers_of(const RunTable& table, const std::string& group) {
  std::vector<std::string> pointers;
  for (const MethodRuns& method : table.methods) {
    for (const RunData& run : method.runs) {
      const Json settings = flat_group(run, group);
      for (const auto& [pointer, value] : settings.items()) {
        if (std::count(pointers.begin(), pointers.end(), pointer) == 0) pointers.push_back(pointer);
      }
    }
  }
  std::sort(pointers.begin(), pointers.end());
  return pointers;
}

// The value that the runs of a method have, an array if they have several, null if they have none.
Json value_of(const MethodRuns& method, const std::string& group, const std::string& pointer) {
  Json values = Json::array();
  for (const RunData& run : method.runs) {
    const Json settings = flat_group(run, group);
    Json value = settings.value(pointer, Json());
    if (std::count(values.begin(), values.end(), value) == 0) values.push_back(std::move(value));
  }
  return values.size() == 1 ? values.front() : values;
}

}  // namespace

std::vector<Setting> settings_of(const RunTable& table) {
  std::vector<Setting> settings;
  for (const std::string& group : groups_of(table)) {
    for (const std::string& pointer : pointers_of(table, group)) {
      Setting setting{.key = dotted(group, pointer), .values = {}};
      if (std::count(kNotSettings.begin(), kNotSettings.end(), setting.key) > 0) continue;
      for (const MethodRuns& method : table.methods) {
        if (method.runs.empty()) continue;
        setting.values.emplace_back(method.label, value_of(method, group, pointer));
      }
      const auto is_first = [&](const auto& value) {
        return value.second == setting.values.front().second;
      };
      if (std::all_of(setting.values.begin(), setting.values.end(), is_first)) {
        setting.values = {{"", setting.values.front().second}};
      }
      // An empty list of options, or a name that was not given.
      const Json& value = setting.values.front().second;
      if (setting.is_common() && (value.is_null() || value == "")) continue;
      settings.push_back(std::move(setting));
    }
  }
  return settings;
}

}  // namespace tamis::program
