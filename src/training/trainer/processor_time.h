// ProcessorTime: whether this process gets the processor when it wants it. A run beside other work
// takes longer for no reason of its own, and its times must not be compared.
#pragma once

#include <optional>

namespace tamis::training {

struct ProcessorTime {
  double running = 0.0;  // seconds in which a thread of this process ran
  double waiting = 0.0;  // seconds in which one could have run, but something else did

  ProcessorTime& operator+=(const ProcessorTime& other);
  friend ProcessorTime operator-(const ProcessorTime& a, const ProcessorTime& b);
  // Share of the time that it could have used, in [0, 1]; empty if it ran for too short a time to
  // tell, or if the kernel does not say.
  std::optional<double> share() const;
};

// Since the process began: /proc/self/task/*/schedstat, and this process's part of what the host of
// a virtual machine took (/proc/stat). Zero where there is no such thing.
ProcessorTime read_processor_time();

}  // namespace tamis::training
