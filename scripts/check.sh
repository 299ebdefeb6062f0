#!/usr/bin/env bash
# Checks the sources without running them. Usage: scripts/check.sh PART...
#   format     C++ is as clang-format leaves it (make format)
#   python     ruff and mypy find nothing
#   tables     generated parts of the documentation are what the result files say; what `make bench` reports is right
#   rooms      includes go along the arrows of docs/architecture.md; no two classes of one name; no trace of the old name
#   workflows  GitHub's workflow files are well-formed
#   tidy       clang-tidy finds nothing in what changed since the commit BASE (default: in all sources)
# Runs all parts even if one fails; the exit code is 1 if any did.
set -uo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/.venv/bin:$PATH

format() { git ls-files -z '*.cpp' '*.h' | xargs -0 clang-format --dry-run --Werror; }
python() { ruff check --quiet . && mypy; }
tables() {
  local stale=0
  for page in readme study analysis tasks worth; do python3 "scripts/render_$page.py" --check || stale=1; done
  python3 tests/benchmarks/report_test.py --quiet || stale=1
  return $stale
}
rooms() { python3 tests/architecture/rooms.py && python3 tests/architecture/rooms_test.py --quiet; }
workflows() { check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml; }
tidy() { scripts/tidy.sh "${BASE:-}"; }

failed=0
for part in "$@"; do
  if output=$("$part" 2>&1); then
    echo "check: $part is fine"
  else
    failed=1
    printf 'check: %s failed\n%s\n' "$part" "$output"
  fi
done
exit $failed
