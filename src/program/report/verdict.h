// What a comparison shows, in plain words.
#pragma once

#include <string>
#include <vector>

#include "program/report/comparison.h"

namespace tamis::program {

// "a, b and c".
std::string enumerate(const std::vector<std::string>& names);

// A few sentences. A difference is called one only if its 95 % interval excludes 0; everything else
// is within noise, which is not the same as equal, and fewer than three seeds support nothing.
std::vector<std::string> verdict(const ReportComparison& comparison);

// What a reader should know before trusting the table: runs that are not finished, settings other
// than the method's that differ, times that cannot be compared, a summary.json that says something
// else.
std::vector<std::string> cautions(const ReportComparison& comparison,
                                  const std::vector<Setting>& settings);

}  // namespace tamis::program
