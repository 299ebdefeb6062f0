#!/usr/bin/env bash
# Runs the tests of ctest again and again on a crowded machine: a test that fails once is a defect. Four tests share a core, so that
# each waits for the others most of the time, and where tests are too few, something else keeps the cores busy.
# Usage: scripts/soak.sh BUILD ROUNDS [argument of ctest ...]
# Without arguments of ctest it leaves out the tests that take time on purpose, whose outcome no load changes: the labels fuzz (30
# seconds each), install (packages are made and installed, other projects compiled) and check (the sources). `-L .` runs them too.
# Round 1 ends with the 20 tests that took longest.
# Rounds that passed are kept in BUILD/soak, by commit and arguments: stopped and started again, it goes on, unless the tree has
# changed. Stops at the first round that fails.
set -euo pipefail
build=$1 rounds=$2
shift 2
[ $# -gt 0 ] || set -- -LE '^(fuzz|install|check)$'
kept=$build/soak/$(git rev-parse --short=12 HEAD)-$(printf '%s\n' "$@" | cksum | cut -d' ' -f1)
if [ -n "$(git status --porcelain)" ]; then
  kept=$build/soak/changed
  rm -rf "$kept"
fi
mkdir -p "$kept"

busy=()
trap 'kill "${busy[@]}" 2>/dev/null || true' EXIT
for _ in $(seq "$(nproc)"); do
  nice -n 19 bash -c 'while :; do :; done' "$0" "$build" &  # its name and folder, for who looks at processes
  busy+=($!)
done

for round in $(seq "$rounds"); do
  log=$kept/round-$round.log
  if [ ! -e "$log" ]; then
    start=$SECONDS
    if ! ctest --test-dir "$build" --output-on-failure --parallel $((4 * $(nproc))) "$@" >"$log.part" 2>&1; then
      mv "$log.part" "$kept/failed.log"
      sed -n '/The following tests FAILED/,$p' "$kept/failed.log" >&2
      echo "round $round of $rounds failed: $kept/failed.log" >&2
      exit 1
    fi
    echo "$((SECONDS - start)) seconds under load" >>"$log.part"
    mv "$log.part" "$log"
  fi
  printf 'round %d of %d: %s, %s\n' "$round" "$rounds" "$(grep 'tests passed' "$log")" "$(tail -n 1 "$log")"
  if [ "$round" = 1 ]; then
    echo "the slowest, in seconds:"
    sed -nE 's|^ *[0-9]+/[0-9]+ +Test +#[0-9]+: ([^ ]+) .* ([0-9.]+) sec *$|\2 \1|p' "$log" | sort -rn | sed -n 1,20p  # reads all of it: "sed 20q" would end the script
  fi
done
