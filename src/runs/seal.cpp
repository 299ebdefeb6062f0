#include "runs/seal.h"

#include <fmt/format.h>

#include <span>
#include <stdexcept>

#include "base/files/crc32c.h"

namespace tamis::runs {

namespace {

constexpr const char* kKey = "crc32c";
constexpr std::string_view kZeros = "00000000";

std::string checksum_of(std::string_view text) {
  return fmt::format("{:08x}", detail::crc32c(std::as_bytes(std::span(text))));
}

Json with_place(const Json& object) {
  Json sealed = object;
  sealed.erase(kKey);
  sealed[kKey] = kZeros;  // behind all others
  return sealed;
}

// Fills in the digits of a text whose last member is the checksum.
std::string fill_in(std::string text) {
  const std::string digits = checksum_of(text);
  return text.replace(text.rfind(kZeros), kZeros.size(), digits);
}

// True if the text with the digits as zeros has that checksum.
bool matches(std::string text, const std::string& digits) {
  const std::size_t at = text.rfind(digits);
  if (digits.size() != kZeros.size() || at == std::string::npos) return false;
  return checksum_of(text.replace(at, digits.size(), kZeros)) == digits;
}

}  // namespace

std::string sealed_line(const Json& object) { return fill_in(format_line(with_place(object))); }

void write_sealed_json(const std::filesystem::path& path, const Json& object) {
  write_text(path, fill_in(format_document(with_place(object))));
}

bool is_sealed(std::string_view text) {
  return text.find(fmt::format("\"{}\"", kKey)) != std::string_view::npos;
}

Json parse_sealed_json(std::string text, std::string_view source) {
  Json document = parse_json(text, source);
  if (!document.is_object()) return document;
  const auto found = document.find(kKey);
  if (found == document.end()) return document;
  if (!found->is_string() || !matches(std::move(text), found->get<std::string>())) {
    throw std::runtime_error(
        fmt::format("{}: does not match its checksum: it is damaged, or was changed by hand; "
                    "whoever changed it removes the member \"{}\"",
                    source, kKey));
  }
  document.erase(kKey);
  return document;
}

Json read_sealed_json(const std::filesystem::path& path) {
  return parse_sealed_json(read_text(path.native()), path.native());
}

}  // namespace tamis::runs
