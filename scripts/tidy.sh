#!/usr/bin/env bash
# Runs clang-tidy over our sources, or over those that changed. Usage: scripts/tidy.sh [COMMIT]
# COMMIT: only sources that differ from it, and for every header that differs one source that includes it.
# Not over files that are compiled with LibTorch: clang 14 cannot read its headers as C++20.
set -euo pipefail
build=build/lint
commit=${1:-}

# The commands of a build that compiles every file by itself, without g++'s precompiled headers, which clang cannot read either.
cmake --preset test -B $build -DTAMIS_UNITY=OFF -DTAMIS_PYTHON_EXECUTABLE="$PWD/.venv/bin/python" > /dev/null
commands=$build/compile_commands.json
sed -i -E 's/-Winvalid-pch|-fpch-preprocess|-include [^ ]*cmake_pch\.hxx//g' $commands
mapfile -t sources < <(awk -F'"' '/"command":/ {torch = /torch\/csrc/} /"file":/ && !torch {print $4}' "$commands" |
  grep -E "^$PWD/(src|python/src)/" | sort -u)

if [ -n "$commit" ]; then
  changed=$( (git diff --name-only --diff-filter=d "$commit"; git ls-files --others --exclude-standard) | sort -u)
  mapfile -t sources < <(
    for file in $(grep -E '\.cpp$' <<< "$changed"); do
      printf '%s\n' "${sources[@]}" | grep -Fx "$PWD/$file" || true
    done
    for file in $(grep -E '^(src|include)/.*\.h$' <<< "$changed"); do
      grep -lF "#include \"${file#*/}\"" "${sources[@]}" | head -1 || true
    done
  )
  mapfile -t sources < <(printf '%s\n' "${sources[@]}" | sort -u | sed '/^$/d')
fi
[ ${#sources[@]} -gt 0 ] || exit 0
printf '%s\n' "${sources[@]}" | xargs -P "$(nproc)" -n 2 clang-tidy --quiet -p $build
