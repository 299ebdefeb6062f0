#include "program/shared/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tamis::program {

std::string with_commas(std::uint64_t number) {
  std::string text = fmt::format("{}", number);
  for (std::size_t end = text.size(); end > 3; end -= 3) text.insert(end - 3, 1, ',');
  return text;
}

std::string counted(std::uint64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", with_commas(number), noun, number == 1 ? "" : "s");
}

std::string format_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t k = 0; k < row.size(); ++k) widths[k] = std::max(widths[k], row[k].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t k = 0; k < row.size(); ++k) {
      text += fmt::format("{}{:>{}}", k == 0 ? "" : "  ", row[k], widths[k]);
    }
    text += '\n';
  }
  return text;
}

void FactList::add(std::string label, std::string value) {
  facts_.emplace_back(std::move(label), std::move(value));
}

std::string FactList::text() const {
  std::size_t width = 0;
  for (const auto& [label, value] : facts_) width = std::max(width, label.size());
  std::string text;
  for (const auto& [label, value] : facts_)
    text += fmt::format("{:<{}}  {}\n", label, width, value);
  return text;
}

}  // namespace tamis::program
