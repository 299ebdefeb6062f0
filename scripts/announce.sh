#!/usr/bin/env bash
# Says what `make run` or `make test` is about to do, how long it takes and how much disk it needs.
# Usage: scripts/announce.sh run|test BUILD_DIR
set -euo pipefail
what=$1
build=$2

# Of each step from a fresh clone on two free cores, on a new and on an older machine: minutes at least, at most, megabytes of disk.
# The rest of this script, and CONTRIBUTING.md, follow from these.
torch=(1 2 1200)
program=(2 4 1000)
training=(1 1 20)
everything=(8 13 3000)
frameworks=(1 2 7500)
tests=(10 15 500)
integrations=(4 6 500)

steps=()
least=0
most=0
megabytes=0
step() {  # name of the figures, what
  local -n figures=$1
  least=$((least + figures[0]))
  most=$((most + figures[1]))
  megabytes=$((megabytes + figures[2]))
  steps+=("$2")
}

[ -e .venv/.installed-torch ] || [ -e .venv/.torch-is-given ] || step torch "make .venv with torch"
if [ "$what" = run ]; then
  [ -x "$build/bin/tamis-training" ] || step program "build the program"
  step training "train with three methods and three seeds on real images"
  steps+=("write runs/quick/report.html")
else
  [ -e "$build/tests/core" ] || step everything "build everything"
  [ -e .venv-frameworks/.installed-frameworks ] || step frameworks "meanwhile make .venv-frameworks with the training frameworks"
  step tests "run every test"
  step integrations "test the integrations and, on fetched data, the recipes"
fi
text=$(printf '%s, ' "${steps[@]}")
minutes="$least to $most minutes"
[ $least != $most ] || minutes="$most minute$([ $most = 1 ] || echo s)"
echo "make $what: ${text%, }."
echo "make $what: about $minutes on two free cores, $megabytes MB of disk" \
  "($(df -Pk . | awk 'NR == 2 {print int($4 / 1024)}') MB are free)."
if [ ! -e .venv ] && [ "$(uname -s)" = Linux ] && [ -z "${PIP_INDEX_URL:-}${PIP_EXTRA_INDEX_URL:-}${PIP_FIND_LINKS:-}${PYTHON:-}" ]; then
  echo "make $what: on Linux, PyPI's torch is the CUDA build, 6,000 MB more. pytorch.org has a smaller one for the CPU: set" \
    "PIP_EXTRA_INDEX_URL to its index, or name an environment that has torch: make $what PYTHON=..."
fi
