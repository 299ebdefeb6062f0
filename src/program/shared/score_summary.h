// What a person wants to know about a vector of scores.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "program/shared/table.h"

namespace tamis::program {

// Scored samples; their least, mean and greatest score.
void add_score_facts(std::span<const float> scores, FactList& facts);

// {"min", "mean", "max"}, null if nothing is scored.
nlohmann::ordered_json score_statistics_json(std::span<const float> scores);

// [{"low", "high", "count"}, ...].
nlohmann::ordered_json histogram_json(std::span<const float> scores);

// A title and bars that fit the terminal; empty if nothing is scored.
std::string score_histogram(std::span<const float> scores);

// The scores with null where there is none.
nlohmann::ordered_json scores_json(std::span<const float> scores);

}  // namespace tamis::program
