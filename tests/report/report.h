// Runs `tamis report` on made-up runs.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fixture_runs.h"
#include "support/program.h"

namespace tamis::test {

// The one comparison of the data behind the page.
inline nlohmann::json report_of(const std::vector<std::filesystem::path>& folders) {
  Arguments arguments = {"report", "--json"};
  for (const std::filesystem::path& folder : folders) arguments.push_back(folder.string());
  const nlohmann::json document = run_json(arguments);
  EXPECT_EQ(document.value("format", ""), "tamis-report");
  EXPECT_EQ(document["comparisons"].size(), 1U);
  return document["comparisons"][0];
}

// The row of a method, null if there is none.
inline nlohmann::json row_of(const nlohmann::json& comparison, const std::string& method) {
  for (const nlohmann::json& row : comparison["rows"]) {
    if (row["method"] == method) return row;
  }
  return {};
}

// All sentences of the verdict.
inline std::string verdict_of(const nlohmann::json& comparison) {
  std::string text;
  for (const nlohmann::json& sentence : comparison["verdict"]) {
    text += sentence.get<std::string>() + " ";
  }
  return text;
}

inline std::string cautions_of(const nlohmann::json& comparison) {
  return comparison["cautions"].dump();
}

}  // namespace tamis::test
