#!/usr/bin/env bash
# Installs the Debian packages that are missing, and nothing else. Where that is not possible it says what to install.
# Usage: scripts/setup.sh PACKAGE...
set -euo pipefail

if ! command -v dpkg-query >/dev/null; then
  echo "setup: this is not Debian; the build needs what Debian calls $*. If the build misses one of them, install it with" \
    "your system's package manager."
  exit 0
fi

missing=()
for package in "$@"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  # sudo may ask for a password only where somebody can answer.
  if ! command -v sudo >/dev/null || ! { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
    echo "setup: packages are missing that only root can install. Have them installed with" >&2
    echo "  apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -q --no-install-recommends "${missing[@]}" |
  { grep --line-buffered -E '^(Need to get|Get:|Setting up)' || true; }
