#include "program/shared/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <span>
#include <stdexcept>

#include "base/files/atomic_file.h"
#include "base/files/posix_io.h"

namespace tamis::program {

namespace {

namespace fs = std::filesystem;

void write_all(int file, std::string_view text, const std::string& name) {
  while (!text.empty()) {
    const ssize_t count =
        detail::retry_interrupted([&] { return ::write(file, text.data(), text.size()); });
    if (count < 0) detail::throw_io_error(name, "write", errno);
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace

void reserve_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    // open() takes the lowest free number, which is this one. Not writable: print() must fail.
    const int opened = ::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    if (opened >= 0 && opened != stream) ::close(opened);
  }
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto code = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F, which some terminals obey as well: two bytes in UTF-8.
    const bool is_c1 = code == 0xC2 && i + 1 < text.size() &&
                       static_cast<unsigned char>(text[i + 1]) >= 0x80 &&
                       static_cast<unsigned char>(text[i + 1]) <= 0x9F;
    if (is_c1) code = static_cast<unsigned char>(text[++i]);
    if (is_c1 || code == 0x7F || (code < 0x20 && code != '\n' && code != '\t')) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out += text[i];
    }
  }
  return out;
}

void print(std::string_view text) { write_all(STDOUT_FILENO, printable(text), "standard output"); }

void print_error(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

std::string format_json(const nlohmann::ordered_json& value) {
  const auto compact = [](const nlohmann::ordered_json& part) {
    return part.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  };
  if (!value.is_object() || value.empty()) return compact(value) + "\n";
  std::string text = "{";
  for (const auto& [key, member] : value.items()) {
    text += fmt::format("{}\n  {}: ", text.size() == 1 ? "" : ",", compact(key));
    text += compact(member);
  }
  return text + "\n}\n";
}

namespace {

// True for /dev/stdout and for the file that standard output has been sent to.
bool is_standard_output(const std::string& path) {
  struct stat named = {};
  struct stat output = {};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(STDOUT_FILENO, &output) == 0 &&
         named.st_dev == output.st_dev && named.st_ino == output.st_ino;
}

// To be written to, never to be replaced.
bool is_stream(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error) && (!fs::is_regular_file(path, error) || is_standard_output(path));
}

}  // namespace

void check_output(const std::string& path) {
  std::error_code error;
  if (path.empty()) throw std::runtime_error("the output's file name must not be empty");
  if (fs::is_directory(path, error)) detail::throw_io_error(path, "write", EISDIR);
  if (is_stream(path)) return;
  const fs::path target = detail::follow_links(path);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : ".";
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    detail::throw_io_error(path, "write to its folder", errno);
  }
}

void check_replaceable(const std::string& path) {
  check_output(path);
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_regular_file(path, error)) {
    throw std::runtime_error(path +
                             ": must be a regular file or a new one, got a device or a pipe");
  }
}

void write_file(const std::string& path, std::string_view text) {
  check_output(path);
  // Through the same descriptor, so that what is printed later does not write over it.
  if (is_standard_output(path)) return print(text);
  if (is_stream(path)) {
    const detail::Descriptor device(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!device.is_open()) detail::throw_io_error(path, "open", errno);
    write_all(device.get(), text, path);
    return;
  }
  detail::AtomicFile file(detail::follow_links(path), text.size());
  file.write(0, std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace tamis::program
