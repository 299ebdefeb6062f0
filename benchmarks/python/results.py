"""Result files: what a figure must say besides itself."""

import datetime
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def header():
    """Date, machine and commit of a result."""
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    names = [line.split(":", 1)[1].strip() for line in flags.splitlines() if line.startswith("model name")]
    git = lambda *command: subprocess.run(["git", "-C", str(ROOT), *command], capture_output=True,  # noqa: E731
                                          text=True).stdout.strip()
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else ""),
        "machine": {"cpu": names[0] if names else "unknown", "avx512": " avx512f " in flags, "cores_used": 1},
    }


def line(result):
    """The same for a page."""
    versions = "".join(f", {name} {version}" for name, version in result.get("versions", {}).items())
    return f"{result['machine']['cpu']}, one core{versions}, {result['date'][:10]}, commit {result['commit'][:10]}."


def write(path, result):
    path.write_text(json.dumps(result, indent=1) + "\n")
