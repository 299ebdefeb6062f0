#!/usr/bin/env bash
# Runs clang-tidy over the sources of the core and of the program. Usage: scripts/tidy.sh BUILD_DIR
# Not over files that are compiled with LibTorch: clang 14 cannot read its headers as C++20.
set -euo pipefail
build=$1
# The same commands without g++'s precompiled headers, which clang cannot read either.
mkdir -p "$build/lint"
commands=$build/lint/compile_commands.json
sed -E 's/-Winvalid-pch|-fpch-preprocess|-include [^ ]*cmake_pch\.hxx//g' "$build/compile_commands.json" > "$commands"
awk -F'"' '/"command":/ {torch = /torch\/csrc/} /"file":/ && !torch {print $4}' "$commands" |
  grep -E "^$PWD/(src|cli)/" | sort -u |
  xargs -P "$(nproc)" -n 4 clang-tidy --quiet -p "$build/lint"
