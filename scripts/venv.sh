#!/usr/bin/env bash
# Makes the virtual environment .venv if there is none, and installs requirements/NAME.txt into it, each once.
# Usage: [VENV=folder] [PYTHON=interpreter] scripts/venv.sh NAME...
# VENV: another folder than .venv; has a torch of its own.
# PYTHON: what to make .venv with (default: python3). If it has torch, .venv takes torch from there, installs none, and leaves the
# interpreter's own environment as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${VENV:-.venv}
python=${PYTHON:-python3}

fail() {
  echo "venv: $*" >&2
  exit 1
}

made_with=$venv/.made-with
if [ -n "${PYTHON:-}" ] && [ -e "$made_with" ] && [ "$(cat "$made_with")" != "$PYTHON" ]; then
  echo "venv: made with $(cat "$made_with"); making it again with $PYTHON"
  rm -rf "$venv"
fi

if [ ! -x $venv/bin/pip ]; then
  command -v "$python" >/dev/null ||
    fail "$python was not found; install Python 3.10 or newer, or name one: make PYTHON=/path/to/python3"
  version=$("$python" -c 'import platform; print(platform.python_version())') ||
    fail "$python does not run; name another one: make PYTHON=/path/to/python3"
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    fail "Python 3.10 or newer is needed, got $version ($(command -v "$python")); name another one: make PYTHON=python3.12"
  # Debian splits these from Python; other Pythons have them.
  needs='import ensurepip, os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))'
  if ! "$python" -c "$needs" 2>/dev/null; then
    case $(command -v "$python") in
      /usr/bin/*) scripts/setup.sh python3-venv python3-dev ;;
      *) fail "$python has no ensurepip or no Python.h; install them, or name another one: make PYTHON=/path/to/python3" ;;
    esac
  fi
  echo "venv: making $venv with Python $version"
  "$python" -m venv $venv
  site=$($venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
  # The package, where the build lays it out.
  echo "$PWD/build/python" > "$site/tamis-build.pth"
  if [ -z "${VENV:-}" ] && [ -n "${PYTHON:-}" ] && "$python" -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("torch"))'; then
    "$python" -c 'import os, sys; print(*(p for p in sys.path if p.endswith("-packages")), sep="\n")' > "$site/given-environment.pth"
    touch $venv/.torch-is-given
  fi
  echo "$python" > "$made_with"
fi

# Every ten seconds: where its output is no terminal pip shows nothing of a download, nor of unpacking.
tell_size() {
  while sleep 10 >/dev/null 2>&1; do echo "venv: $venv has $(du -sm "$venv" 2>/dev/null | cut -f 1) MB"; done
}

# install NAME: once for each version of its file.
install() {
  local file=requirements/$1.txt stamp=$venv/.installed-$1
  [ "$1" != torch ] || [ ! -e $venv/.torch-is-given ] || return 0
  ! cmp -s "$file" "$stamp" || return 0
  # What the given environment has too, but not for its programs: they would not be in .venv/bin.
  local again=()
  [ ! -e $venv/.torch-is-given ] || again=(--ignore-installed)
  echo "venv: installing $(grep -oE '^[a-z][a-z0-9-]*' "$file" | uniq | paste -sd ' ')"
  local downloads
  downloads=$(realpath "$venv")/.downloads
  mkdir -p "$downloads"
  tell_size &
  telling=$!
  trap 'kill $telling; rm -rf "$venv/.downloads"' EXIT
  TMPDIR=$downloads $venv/bin/python -m pip install --disable-pip-version-check --no-input "${again[@]}" -r "$file" |
    sed -u '/already satisfied/d'
  kill $telling
  trap - EXIT
  rm -rf "$downloads"
  cp "$file" "$stamp"
}

for name in "$@"; do install "$name"; done
cmake_version=$(cmake --version 2>/dev/null | sed -n 's/^cmake version //p')
if [ "$(printf '3.25\n%s\n' "$cmake_version" | sort -V | head -1)" != 3.25 ] || ! command -v ninja >/dev/null; then
  install tools
fi
