// Plain text tables.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tamis::program {

// 1234567 as 1,234,567.
std::string with_commas(std::uint64_t number);

// "1 epoch", "1,200 epochs".
std::string counted(std::uint64_t number, std::string_view noun);

// Rows of cells as columns. The first row is the header. Cells are aligned to the right.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

// "label  value" per line, values below each other.
class FactList {
 public:
  void add(std::string label, std::string value);
  std::string text() const;

 private:
  std::vector<std::pair<std::string, std::string>> facts_;
};

}  // namespace tamis::program
