#!/usr/bin/env bash
# Installs torch into .venv and, in a new build folder, compiles what needs no torch while pip downloads and unpacks it.
# Usage: scripts/install_torch.sh BUILD [argument of cmake ...]
set -euo pipefail
build=$1
shift

scripts/venv.sh build
if [ -e .venv/.installed-torch ] || [ -e .venv/.torch-is-given ] || [ -e "$build/CMakeCache.txt" ]; then
  exec scripts/venv.sh torch
fi

mkdir -p "$build"
log=$build/torch.log
echo "venv: installing torch, and meanwhile compiling what needs none"
set -m  # a group of its own, so that pip ends with it
scripts/venv.sh torch >"$log" 2>&1 &
set +m
installing=$!
trap 'kill -- -$installing 2>/dev/null && wait $installing 2>/dev/null || true' EXIT
cmake --preset release --no-warn-unused-cli -DTAMIS_LIBTORCH=OFF -DTAMIS_PYTHON=OFF "$@" >/dev/null
# In parts, of which none begins once torch is there: its precompiled header is the longest step of all and waits for nothing else.
for targets in "tamis_core tamis_runs" "tamis_program tamis_report" tamis; do
  ! kill -0 $installing 2>/dev/null || cmake --build "$build" --target $targets
done
# What is left of the installation can be watched.
tail -n 3 -f --pid=$installing "$log"
wait $installing || { tail -n 20 "$log" >&2; exit 1; }
