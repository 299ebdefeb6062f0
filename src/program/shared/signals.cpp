#include "program/shared/signals.h"

#include <csignal>

namespace tamis::program {

namespace {

volatile std::sig_atomic_t received_signal = 0;

// SIGHUP: the terminal was closed, or the connection to it was lost.
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

void note(int signal) { received_signal = signal; }

void set_handler(int signal, void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals() {
  received_signal = 0;
  for (const int signal : kSignals) {
    set_handler(signal, note, SA_RESTART | static_cast<int>(SA_RESETHAND));
  }
}

StopSignals::~StopSignals() {
  for (const int signal : kSignals) set_handler(signal, SIG_DFL, 0);
}

int StopSignals::received() { return received_signal; }

}  // namespace tamis::program
