#include "program/shared/signals.h"

#include <cstddef>

namespace tamis::program {

namespace {

volatile std::sig_atomic_t received_signal = 0;

void note(int signal) { received_signal = signal; }

}  // namespace

StopSignals::StopSignals() {
  received_signal = 0;
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (std::size_t k = 0; k < kSignals.size(); ++k) {
    sigaction(kSignals[k], nullptr, &before_[k]);
    if (before_[k].sa_handler != SIG_IGN) sigaction(kSignals[k], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t k = 0; k < kSignals.size(); ++k) sigaction(kSignals[k], &before_[k], nullptr);
}

int StopSignals::received() { return received_signal; }

}  // namespace tamis::program
