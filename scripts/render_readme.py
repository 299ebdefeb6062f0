#!/usr/bin/python3
"""Writes the generated parts of the documentation from the result files.

A part stands between `<!-- begin NAME -->` and `<!-- end NAME -->`. With --check nothing is written, and the
exit code is 1 if a part is not what the result files say.
"""

import argparse
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

sys.path.insert(0, str(ROOT / "scripts"))

import render_study  # noqa: E402
import report  # noqa: E402


def newest(pattern):
    """The newest result file, by the date in its name."""
    paths = sorted((ROOT / "benchmarks" / "results").glob(pattern))
    return paths[-1] if paths else None


def performance(short):
    path = newest("core-*.json")
    if path is None:
        return None
    result = json.loads(path.read_text())
    command = f"`make bench BENCH=\"--max-samples 100000000 --billion --save\"`, [{path.name}](/benchmarks/results/{path.name})"
    return f"{report.short_table(result) if short else report.table(result)}\n\nMade by {command}."


def study():
    tables = render_study.short_table()
    if not tables:
        return None
    return (f"{tables}\n\nDifference: in points, paired by seed, with its 95 % interval; bold where the seeds support it. Made by "
            "`make study`; more, with the plots, in [docs/study.md](docs/study.md).")


# File, part, function that makes it (None: there is no result yet).
PARTS = [
    ("README.md", "study", study),
    ("README.md", "performance", lambda: performance(short=True)),
    ("docs/performance.md", "performance", lambda: performance(short=False)),
]


def replaced(text, name, content):
    pattern = re.compile(f"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    if not pattern.search(text):
        sys.exit(f"render_readme: no part named {name}")
    return pattern.sub(lambda match: match.group(1) + content + "\n" + match.group(2), text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether everything is up to date")
    check = parser.parse_args().check
    stale = []
    for file, name, make in PARTS:
        content = make()
        if content is None:
            continue
        path = ROOT / file
        text = path.read_text()
        new = replaced(text, name, content)
        if new != text:
            stale.append(f"{file}: {name}")
            if not check:
                path.write_text(new)
    if stale:
        print(("not up to date: " if check else "written: ") + ", ".join(stale))
    sys.exit(1 if check and stale else 0)


if __name__ == "__main__":
    main()
