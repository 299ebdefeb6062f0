// Everything the program writes: to standard output, and to files that appear complete or not at
// all.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tamis::program {

// Call first. Opens a closed standard stream, so that no file gets its number and its text; writing
// to a closed standard output still fails.
void reserve_standard_streams();

// The text with \u001b for the character U+001B, and so on for all control characters but line ends
// and tabs: names from files must not command the terminal. JSON stays what it is.
std::string printable(std::string_view text);

// Writes to standard output at once, printable. Throws std::runtime_error if that fails.
void print(std::string_view text);

// Writes to standard error. That this fails, as it does once the terminal is closed, must not end a
// run that is about to save.
void print_error(std::string_view text);

// One key per line, values compact; numbers that are not finite become null.
std::string format_json(const nlohmann::ordered_json& value);

// Throws std::runtime_error if `path` cannot be written later for a reason that shows now: its
// folder is missing, or it is a folder. For commands that work long before they write.
void check_output(const std::string& path);

// A new file appears under its name complete or not at all, and replaces one that is there. A
// device, a pipe, or the file behind standard output is appended to. Throws std::runtime_error.
void write_file(const std::string& path, std::string_view text);

// For a file that Pruner::save will make: check_output(), and refuses what must not be replaced.
void check_replaceable(const std::string& path);

}  // namespace tamis::program
