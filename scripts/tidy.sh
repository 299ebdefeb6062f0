#!/usr/bin/env bash
# Runs clang-tidy over our own sources. Usage: scripts/tidy.sh BUILD_DIR
# Only the core and the program: clang 14 cannot read every header of the other libraries quickly.
set -euo pipefail
build=$1
git ls-files 'src/*.cpp' 'cli/*.cpp' | grep -v '^src/libtorch/' |
  xargs -P "$(nproc)" -n 4 clang-tidy --quiet -p "$build"
