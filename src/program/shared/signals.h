// Ctrl-C, SIGTERM and a closed terminal: finish the step, save, leave.
#pragma once

#include <array>
#include <csignal>
#include <exception>

namespace tamis::program {

// The program was asked to stop and did so in order; it exits with 128 + signal, as shells have it.
class Interrupted : public std::exception {
 public:
  explicit Interrupted(int signal) : signal_(signal) {}
  int exit_code() const { return 128 + signal_; }
  const char* what() const noexcept override { return "interrupted"; }

 private:
  int signal_;
};

// While it lives, the first SIGINT, SIGTERM or SIGHUP is only noted; the second one kills as usual.
// A signal that was ignored before, as nohup has it, stays ignored. The destructor restores what
// was set before.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  // The signal that came, or 0.
  static int received();

 private:
  // SIGHUP: the terminal was closed, or the connection to it was lost.
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

  std::array<struct sigaction, kSignals.size()> before_ = {};
};

}  // namespace tamis::program
