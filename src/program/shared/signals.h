// Ctrl-C and SIGTERM: finish the step, save, leave.
#pragma once

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

// While it lives, the first SIGINT or SIGTERM is only noted; the second one kills as usual.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  // The signal that came, or 0.
  static int received();
};

}  // namespace tamis::program
