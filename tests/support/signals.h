// The signals of a program that a test starts.
#pragma once

#include <csignal>

namespace tamis::test {

// In a child, before exec: no signal is ignored but this one, if any. Tests that run under nohup or
// in the background of a script inherit ignored signals, and would hand them on.
inline void set_signals(int ignored_signal) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    std::signal(signal, signal == ignored_signal ? SIG_IGN : SIG_DFL);
  }
}

}  // namespace tamis::test
