"""Tells whether others use the machine while something is measured."""

import os
import resource
import time

# Cores that others may keep busy before a measurement does not count.
LIMIT = 0.1


def _busy_seconds():
    """Processor seconds that all processes of the machine have used, and those that the host took away."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _own_seconds():
    usages = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class Watch:
    """How many cores others have kept busy since it was made."""

    def __init__(self):
        self._start = time.monotonic(), _busy_seconds(), _own_seconds()

    def others(self):
        start, busy, own = self._start
        seconds = time.monotonic() - start
        others = (_busy_seconds() - busy) - (_own_seconds() - own)
        return max(0.0, others / seconds) if seconds > 0 else 0.0


def wait(say=print, attempts=5, pause=10.0):
    """Waits until the machine is quiet, at most attempts times. Says so; returns the cores that others use."""
    for attempt in range(1, attempts + 1):
        watch = Watch()
        time.sleep(1.0)
        others = watch.others()
        if others <= LIMIT:
            break
        if attempt < attempts:
            say(f"the machine is busy (others use {others:.1f} cores): waiting, {attempt} of {attempts - 1}")
            time.sleep(pause)
    return others


def measure(name, function, say=print, attempts=3):
    """Calls the function, again if others disturbed it. Returns all results, the least disturbed first, and its disturbance."""
    found = []
    for attempt in range(1, attempts + 1):
        watch = Watch()
        result = function()
        others = watch.others()
        found.append((others, result))
        if others <= LIMIT:
            break
        again = "measuring again" if attempt < attempts else "giving up"
        say(f"{name}: others used {others:.1f} cores meanwhile; {again}")
    found.sort(key=lambda one: one[0])
    return [result for _, result in found], found[0][0]
