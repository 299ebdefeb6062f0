// Runs the program as a subprocess and keeps what it wrote.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "paths.h"
#include "support/scratch_folder.h"
#include "support/signals.h"

namespace tamis::test {

using Arguments = std::vector<std::string>;

struct Setting {
  std::string input = {};        // standard input
  std::string output_path = {};  // where standard output goes; captured if empty
  bool close_output = false;     // start with standard output closed
  rlim_t file_size_limit = RLIM_INFINITY;
  rlim_t memory_limit = RLIM_INFINITY;
  int ignored_signal = 0;  // as nohup does with SIGHUP; 0: none
  std::vector<std::pair<std::string, std::string>> environment = {};
};

struct Outcome {
  int code = -1;  // exit code, or minus the number of the signal that ended the program
  std::string out;
  std::string err;

  nlohmann::json json() const { return nlohmann::json::parse(out); }
};

namespace detail {

// A file in memory that lives as long as its descriptor.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& text = "") : number_(::memfd_create("tamis-test", 0)) {
    if (number_ < 0 || ::write(number_, text.data(), text.size()) != std::ssize(text)) {
      throw std::system_error(errno, std::generic_category(), "memfd");
    }
    ::lseek(number_, 0, SEEK_SET);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(number_); }

  int number() const { return number_; }
  std::string text() const {
    std::string all(static_cast<std::size_t>(::lseek(number_, 0, SEEK_END)), '\0');
    const ssize_t size = ::pread(number_, all.data(), all.size(), 0);
    all.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    return all;
  }

 private:
  int number_;
};

}  // namespace detail

inline Outcome run(const Arguments& arguments, const Setting& setting = {}) {
  const detail::MemoryFile input(setting.input);
  const detail::MemoryFile output;
  const detail::MemoryFile error;
  std::vector<char*> argv = {const_cast<char*>("tamis")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) {
    for (const auto& [name, value] : setting.environment) ::setenv(name.c_str(), value.c_str(), 1);
    ::dup2(input.number(), STDIN_FILENO);
    ::dup2(error.number(), STDERR_FILENO);
    const int out = setting.output_path.empty() ? output.number()
                                                : ::open(setting.output_path.c_str(), O_WRONLY);
    ::dup2(out, STDOUT_FILENO);
    if (setting.close_output) ::close(STDOUT_FILENO);
    const rlimit limit{setting.file_size_limit, setting.file_size_limit};
    ::setrlimit(RLIMIT_FSIZE, &limit);
#ifndef TAMIS_SANITIZED  // Sanitizers need more address space than any limit.
    const rlimit memory{setting.memory_limit, setting.memory_limit};
    ::setrlimit(RLIMIT_AS, &memory);
#endif
    set_signals(setting.ignored_signal);
    ::execv(TAMIS_PROGRAM, argv.data());
    ::_exit(127);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child) {
    throw std::system_error(errno, std::generic_category(), "waitpid");
  }
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), output.text(), error.text()};
}

// Text files of one test.
class TextFolder : public ScratchFolder {
 public:
  std::string at(const std::string& name) const { return (path() / name).string(); }

  // Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(at(name), std::ios::binary) << text;
    return at(name);
  }
  std::string write_json(const std::string& name, const nlohmann::json& value) const {
    return write(name, value.dump());
  }
  std::string read(const std::string& name) const {
    std::ifstream file(at(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
};

// Runs the program, which must succeed, and parses its output.
inline nlohmann::json run_json(const Arguments& arguments, const Setting& setting = {}) {
  const Outcome outcome = run(arguments, setting);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  return nlohmann::json::parse(outcome.out, nullptr, false);
}

// Runs the program, which must print one line on standard error, starting with its name, and
// nothing else; returns that line.
inline std::string run_refused(int code, const Arguments& arguments, const Setting& setting = {}) {
  const Outcome outcome = run(arguments, setting);
  EXPECT_EQ(outcome.code, code) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err.find("tamis: "), 0U) << outcome.err;
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
  return outcome.err;
}

}  // namespace tamis::test
