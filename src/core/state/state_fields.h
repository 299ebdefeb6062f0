// The metadata of a state file: numbers as text, and back, exactly.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/files/safetensors.h"
#include "tamis/pruner.h"
#include "tamis/selection.h"
#include "tamis/types.h"

namespace tamis::detail {

// The shortest text that reads back as the same number; "nan" for any NaN.
std::string to_text(double value);

// Appends fields that the read_ functions below understand.
void write_options(const PrunerOptions& options, Metadata& out);
void write_numbers(std::string_view prefix, const OptionMap& numbers, Metadata& out);
void write_report(const SelectionReport& report, Metadata& out);

// All throw std::runtime_error, with the name, if a field is missing or not what it must be.
const std::string& read_text(const SafetensorsReader& file, std::string_view key);
std::uint64_t read_integer(const SafetensorsReader& file, std::string_view key);
double read_real(const SafetensorsReader& file, std::string_view key);
PrunerOptions read_options(const SafetensorsReader& file);
// All fields whose names begin with `prefix`, without it.
OptionMap read_numbers(const SafetensorsReader& file, std::string_view prefix);
SelectionReport read_report(const SafetensorsReader& file);

// Throws std::runtime_error, naming the first option that differs and both values, unless the file
// was written with these options.
void check_same_options(const SafetensorsReader& file, const PrunerOptions& options);

}  // namespace tamis::detail
