// The report page without data, built from report/ and compiled into the program.
#pragma once

#include <string_view>

namespace tamis::program {

std::string_view report_template();

}  // namespace tamis::program
