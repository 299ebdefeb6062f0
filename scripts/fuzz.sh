#!/usr/bin/env bash
# Runs the fuzzers one after the other and counts what they did.
# Usage: scripts/fuzz.sh BUILD SECONDS [HARNESS...]
# New inputs are kept in BUILD/corpus/HARNESS; what fails is kept in BUILD/findings and makes the exit code 1. How many executions a
# harness had goes into BUILD/counts, a line per call, by commit ("changed": the tree was not a commit); the end sums up all calls.
set -euo pipefail
build=$1 seconds=$2
shift 2
fuzz=$(cd "$(dirname "$0")/.." && pwd)/tests/fuzz
corpora=$fuzz/corpus
commit=$(git -C "$fuzz" rev-parse --short=12 HEAD 2>/dev/null || echo none)
[ -z "$(git -C "$fuzz" status --porcelain 2>/dev/null)" ] || commit=changed
mkdir -p "$build/findings"
if [ $# -eq 0 ]; then
  for program in "$build"/bin/fuzz_*; do set -- "$@" "${program##*/fuzz_}"; done
fi
# -timeout: one input must not take 10 seconds; -rss_limit_mb: a small file must not take 1 GB;
# -close_fd_mask: what the program under test prints is not kept.
limits=(-timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=512 -close_fd_mask=3)

failed=0
for name in "$@"; do
  mkdir -p "$build/corpus/$name"
  log=$build/findings/$name.log
  result="no finding" count=0
  if ! "$build/bin/fuzz_$name" -max_total_time="$seconds" -max_len=4096 "${limits[@]}" -print_final_stats=1 \
      -artifact_prefix="$build/findings/$name-" "$build/corpus/$name" "$corpora/$name" >"$log" 2>&1; then
    result="FINDING, see $log" failed=1
  fi
  count=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  # The same at a length that shows what takes longer than in proportion.
  long=$(mktemp -d)
  python3 "$fuzz/lengthen.py" "$corpora/$name" "$long"
  if ! "$build/bin/fuzz_$name" "${limits[@]}" -artifact_prefix="$build/findings/$name-long-" "$long"/* >"$log.long" 2>&1; then
    result="FINDING, see $log.long" failed=1
  fi
  rm -rf "$long"
  echo "$commit $name ${count:-0} $(date -u +%FT%TZ) $result" >>"$build/counts"
  printf '%-12s %12s executions, %s\n' "$name" "${count:-0}" "$result"
done
awk -v commit="$commit" '
  $1 == commit { of[$2] += $3; total += $3 }
  END { for (name in of) printf "%-12s %12d\n", name, of[name] | "sort"; close("sort")
        printf "%d executions in all calls of this commit (%s)\n", total, commit }' "$build/counts"
exit $failed
