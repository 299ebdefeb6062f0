#!/usr/bin/env bash
# Runs clang-tidy over our sources, or over those that changed. Usage: scripts/tidy.sh BUILD_DIR [COMMIT]
# COMMIT: only sources that differ from it, and for every header that differs one source that includes it.
# Not over files that are compiled with LibTorch: clang 14 cannot read its headers as C++20.
set -euo pipefail
build=$1
commit=${2:-}

# The same commands without g++'s precompiled headers, which clang cannot read either.
mkdir -p "$build/lint"
commands=$build/lint/compile_commands.json
sed -E 's/-Winvalid-pch|-fpch-preprocess|-include [^ ]*cmake_pch\.hxx//g' "$build/compile_commands.json" > "$commands"
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
printf '%s\n' "${sources[@]}" | xargs -P "$(nproc)" -n 2 clang-tidy --quiet -p "$build/lint"
