#!/usr/bin/env bash
# Says what `make run` or `make test` is about to do, how long it takes and how much disk it needs.
# Usage: scripts/announce.sh run|test BUILD_DIR
set -euo pipefail
what=$1
build=$2

steps=()
minutes=0
megabytes=0
step() {  # minutes, megabytes, what
  minutes=$((minutes + $1))
  megabytes=$((megabytes + $2))
  steps+=("$3")
}

[ -e .venv/.installed-torch ] || [ -e .venv/.torch-is-given ] || step 1 1200 "make .venv with torch"
if [ "$what" = run ]; then
  [ -x "$build/bin/tamis-training" ] || step 3 500 "build the program"
  step 1 20 "train with three methods and three seeds on real images"
  steps+=("write runs/quick/report.html")
else
  [ -e "$build/tests/core" ] || step 13 3000 "build everything"
  [ -e .venv-frameworks/.installed-frameworks ] || step 2 7500 "meanwhile make .venv-frameworks with the training frameworks"
  step 13 500 "run every test"
  step 6 500 "test the integrations and, on fetched data, the recipes"
fi
text=$(printf '%s, ' "${steps[@]}")
echo "make $what: ${text%, }."
echo "make $what: about $minutes minute$([ $minutes = 1 ] || echo s) on two free cores, $megabytes MB of disk" \
  "($(df -Pk . | awk 'NR == 2 {print int($4 / 1024)}') MB are free)."
if [ ! -e .venv ] && [ "$(uname -s)" = Linux ] && [ -z "${PIP_INDEX_URL:-}${PIP_EXTRA_INDEX_URL:-}${PIP_FIND_LINKS:-}${PYTHON:-}" ]; then
  echo "make $what: on Linux, PyPI's torch is the CUDA build, 6,000 MB more. pytorch.org has a smaller one for the CPU: set" \
    "PIP_EXTRA_INDEX_URL to its index, or name an environment that has torch: make $what PYTHON=..."
fi
