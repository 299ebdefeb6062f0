// ChildProcess: a command that runs while this program watches over it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace tamis::program {

// Runs COMMAND ARGUMENTS... in a shell, in a process group of its own, so that Ctrl-C reaches it
// only through send(). It dies with this program.
class ChildProcess {
 public:
  // Its output is appended to `out`, its errors to `err`. Throws std::runtime_error.
  ChildProcess(const std::string& command, const std::vector<std::string>& arguments,
               const std::filesystem::path& out, const std::filesystem::path& err);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();

  // True once it has ended.
  bool has_ended();
  // To all its processes.
  void send(int signal) const;

  // Requires: it has ended. 128 + signal if one ended it, as shells have it.
  int exit_code() const;

 private:
  pid_t process_;
  bool has_ended_ = false;
  int status_ = 0;
};

}  // namespace tamis::program
