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

[[noreturn]] void refuse_seal(std::string_view source, std::string_view fault,
                              std::string_view cure) {
  throw std::runtime_error(
      fmt::format("{}: {}: it is damaged, or was changed by hand; {}", source, fault, cure));
}

}  // namespace

std::string sealed_line(const Json& object) { return fill_in(format_line(with_place(object))); }

void write_sealed_json(const std::filesystem::path& path, const Json& object) {
  write_text(path, fill_in(format_document(with_place(object))));
}

SealedText parse_sealed_json(std::string text, std::string_view source, std::string_view cure) {
  Json document = parse_json(text, source);
  if (!document.is_object()) return {std::move(document), false};
  const auto found = document.find(kKey);
  if (found == document.end()) return {std::move(document), false};
  if (!found->is_string() || !matches(std::move(text), found->get<std::string>())) {
    refuse_seal(source, "does not match its checksum", cure);
  }
  document.erase(kKey);
  return {std::move(document), true};
}

SealedDocument read_sealed_json(const std::filesystem::path& path, const SealedFormat& format) {
  const std::string& source = path.native();
  auto [json, is_sealed] = parse_sealed_json(read_text(source), source, format.cure);
  const std::uint64_t version = require_format(json, format.name, format.newest, source);
  if (version >= format.first_sealed && !is_sealed) refuse_without_seal(source, format.cure);
  return {std::move(json), version};
}

void refuse_without_seal(std::string_view source, std::string_view cure) {
  refuse_seal(source, "has no checksum", cure);
}

}  // namespace tamis::runs
