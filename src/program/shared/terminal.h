// What the terminal can show, and a progress line for work that takes long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tamis::program {

enum class Stream { output, error };

bool is_terminal(Stream stream);

// Columns of the terminal; COLUMNS if there is none, 80 if that is not set either. In [40, 200].
std::size_t terminal_width();

// True if the locale's characters are UTF-8.
bool has_utf8();

// A line on standard error that is written over, and only there if that is a terminal.
class Progress {
 public:
  explicit Progress(std::uint64_t total);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  void show(std::uint64_t done, const std::string& text);
  void clear();

 private:
  std::uint64_t total_;
  bool is_on_;
  bool is_shown_ = false;
};

}  // namespace tamis::program
