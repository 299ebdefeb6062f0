#!/usr/bin/env bash
# Builds the LibTorch adapter and the Python package against another torch, and runs their tests on it.
# Usage: [PYTHON=interpreter] [VENV=folder] scripts/test_torch.sh VERSION [CTEST ARGUMENT...]
# PYTHON: what to make the environment with (default: python3). VENV: where, or one that is there (default: build/torch-VERSION/venv).
# On Linux, PyPI's torch is the CUDA build: up to 6 GB of disk. It runs on the CPU.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?usage: scripts/test_torch.sh VERSION}
shift
build=build/torch-$version
venv=${VENV:-$build/venv}

mkdir -p "$build"
if [ ! -x "$venv/bin/python" ]; then
  "${PYTHON:-python3}" -m venv "$venv"
fi
python=$(cd "$venv/bin" && pwd)/python
"$python" -m pip install --disable-pip-version-check --quiet "torch==$version" numpy nanobind scikit-build-core pytest
PATH=$venv/bin:$PWD/.venv/bin:$PATH

echo "test-torch: $("$python" -c 'import sys, torch; print("torch", torch.__version__, "on Python", sys.version.split()[0])')"
cmake -S . -B "$build" -G Ninja -DTAMIS_LIBTORCH=ON -DTAMIS_PYTHON=ON -DTAMIS_TESTS=ON -DTAMIS_PROGRAM=OFF \
  -DTAMIS_PYTHON_EXECUTABLE="$python" >"$build/configure.log" || { cat "$build/configure.log"; exit 1; }
cmake --build "$build" --target tamis_libtorch_tests tamis_distributed_tests tamis_python tamis_python_files libtorch_training ${JOBS:+-j$JOBS}
ctest --test-dir "$build" --output-on-failure -L 'libtorch|distributed|python' -E 'python\.(wheel|install)' "$@"
