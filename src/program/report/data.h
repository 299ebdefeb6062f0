// The document behind the report page, and the page itself.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tamis::program {

// Reads runs and comparisons (see read_comparisons) into one document: for every comparison the
// verdict, the table, the settings, and the curves of each run. `title` is made from the runs if it
// is empty. Throws std::runtime_error.
nlohmann::ordered_json report_document(const std::vector<std::string>& folders,
                                       const std::string& title);

// The page with a document in it: one file that needs no other. Requires: the template has the
// places for title and data, once each.
std::string report_page(std::string_view page_template, const nlohmann::ordered_json& document);

}  // namespace tamis::program
