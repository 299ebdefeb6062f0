#include "program/shared/terminal.h"

#include <fmt/format.h>
#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <string_view>

#include "program/shared/arguments.h"
#include "program/shared/output.h"

namespace tamis::program {

bool is_terminal(Stream stream) {
  return ::isatty(stream == Stream::output ? STDOUT_FILENO : STDERR_FILENO) == 1;
}

std::size_t terminal_width() {
  double width = 80.0;
  winsize size = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    width = size.ws_col;
  } else if (const char* const columns = std::getenv("COLUMNS"); columns != nullptr) {
    width = parse_number(columns).value_or(width);
  }
  return static_cast<std::size_t>(width > 40.0 ? std::min(width, 200.0) : 40.0);
}

bool has_utf8() {
  static const bool result = [] {
    std::setlocale(LC_CTYPE, "");
    return std::string_view(nl_langinfo(CODESET)) == "UTF-8";
  }();
  return result;
}

Progress::Progress(std::uint64_t total)
    : total_(std::max<std::uint64_t>(total, 1)), is_on_(is_terminal(Stream::error)) {}

void Progress::show(std::uint64_t done, const std::string& text) {
  if (!is_on_) return;
  constexpr std::uint64_t kBar = 24;
  const auto filled = static_cast<std::size_t>(std::min(done, total_) * kBar / total_);
  print_error(fmt::format("\r\x1b[K[{:<{}}] {}", std::string(filled, '#'), kBar, printable(text)));
  is_shown_ = true;
}

void Progress::clear() {
  if (!is_shown_) return;
  print_error("\r\x1b[K");
  is_shown_ = false;
}

}  // namespace tamis::program
