#!/usr/bin/env bash
# Runs the fuzzers one after the other and counts what they did.
# Usage: scripts/fuzz.sh BUILD SECONDS [HARNESS...]
# New inputs are kept in BUILD/corpus/HARNESS; what fails is kept in BUILD/findings and makes the exit code 1.
set -euo pipefail
build=$1 seconds=$2
shift 2
corpora=$(cd "$(dirname "$0")/.." && pwd)/tests/fuzz/corpus
mkdir -p "$build/findings"
[ $# -gt 0 ] || set -- $(ls "$corpora")

failed=0 total=0
for name in "$@"; do
  mkdir -p "$build/corpus/$name"
  log=$build/findings/$name.log
  # -timeout: one input must not take 10 seconds; -rss_limit_mb: a small file must not take 1 GB;
  # -close_fd_mask: what the program under test prints is not kept.
  if "$build/bin/fuzz_$name" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=512 \
      -print_final_stats=1 -close_fd_mask=3 -artifact_prefix="$build/findings/$name-" "$build/corpus/$name" "$corpora/$name" >"$log" 2>&1; then
    result="no finding"
  else
    result="FINDING, see $log" failed=1
  fi
  count=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  total=$((total + ${count:-0}))
  printf '%-12s %12s executions, %s\n' "$name" "${count:-0}" "$result"
done
echo "$total executions in all"
exit $failed
