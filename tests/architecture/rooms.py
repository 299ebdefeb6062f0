#!/usr/bin/env python3
"""Fails if the sources leave the architecture of docs/architecture.md.

Usage: rooms.py [FOLDER], the checkout (default: this one). Prints one line per finding; the exit code is 1 if there is any.
"""

import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass, field

OLD_NAME = "win" + "now"
# Where the old name may stand: the constant that lets old files load, and files that an old version wrote.
OLD_NAME_ALLOWED = ("src/base/former_name.h", "tests/golden/")


@dataclass(frozen=True)
class Room:
    """A folder, the rooms its files may include besides itself, and the libraries besides the standard one."""

    folder: str
    rooms: frozenset = field(default_factory=frozenset)
    libraries: frozenset = field(default_factory=frozenset)


def room(folder, rooms="", libraries=""):
    return Room(folder, frozenset(rooms.split()), frozenset(libraries.split()))


# A file belongs to the room with the longest folder that fits.
ROOMS = {
    "api": room("include/tamis/"),
    "torch-api": room("include/tamis/libtorch/", "api", "torch"),
    "base": room("src/base/", "api", "system"),
    "core": room("src/core/", "api base", "system"),
    "runs": room("src/runs/", "api base", "system json fmt"),
    "libtorch": room("src/libtorch/", "api base torch-api", "system torch"),
    "training": room("src/training/", "api base runs torch-api", "system torch json fmt images"),
    "program": room("src/program/", "api base runs", "system cli json fmt"),
    "program-train": room("src/program/train/", "api base runs program training", "system cli json fmt"),
    "python": room("python/src/", "api base", "system python"),
}
# Tests, benchmarks and examples may include any room, but private headers of the core are for its own tests and for the
# benchmark of its parts.
CORE_TESTS = ("tests/core/", "tests/base/", "tests/support/", "benchmarks/parts_bench.cpp")

# First part of an included path, or the whole name: which room or library it belongs to.
INCLUDED_ROOMS = {
    "tamis/libtorch/": "torch-api",
    "tamis/": "api",
    "base/": "base",
    "core/": "core",
    "runs/": "runs",
    "libtorch/": "libtorch",
    "training/": "training",
    "program/train/": "program-train",
    "program/": "program",
}
LIBRARIES = {
    "torch": ("torch/", "ATen/", "c10/", "caffe2/", "gloo/"),
    "cli": ("CLI/",),
    "json": ("nlohmann/",),
    "fmt": ("fmt/",),
    "images": ("png.h", "zlib.h"),
    "python": ("nanobind/", "pybind11/", "Python.h"),
    "tests": ("gtest/", "gmock/", "benchmark/"),
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"', re.DOTALL)
# What opens or closes a scope: a namespace, a class (not A::B, which is named by A), any other brace.
SCOPE = re.compile(
    r"(?P<namespace>\bnamespace\b[^;{}=]*\{)|"
    r"\b(?:class|struct|enum\s+class|enum)\s+(?:alignas\([^)]*\)\s*)?(?P<name>[A-Z]\w*)(?:\s+final)?\s*(?::(?!:)[^;{}]*)?\{|"
    r"(?P<open>\{)|(?P<close>\})"
)


def room_of(path):
    """The room of a file, None for tests and other files that belong to no room."""
    fitting = [name for name, room in ROOMS.items() if path.startswith(room.folder)]
    return max(fitting, key=lambda name: len(ROOMS[name].folder), default=None)


def target_of(included):
    """("room", name) or ("library", name) of what an #include names; a name without a folder is a neighbour of the file."""
    for prefix, name in INCLUDED_ROOMS.items():
        if included.startswith(prefix):
            return "room", name
    for name, prefixes in LIBRARIES.items():
        if included.startswith(prefixes):
            return "library", name
    return "library", "system" if "." in included or "/" in included else "standard"


def include_findings(path, text):
    """Includes of one file that go against the arrows."""
    home = room_of(path)
    for quote, included in INCLUDE.findall(text):
        if quote == '"' and "/" not in included:
            continue
        kind, target = target_of(included)
        if home is None:
            if target == "core" and not path.startswith(CORE_TESTS):
                yield f"{path}: includes {included}, a private header of the core"
        elif kind == "room":
            if target != home and target not in ROOMS[home].rooms:
                why = "a private header of the core" if target == "core" else f"but {ROOMS[home].folder} must not use {target}"
                yield f"{path}: includes {included}, {why}"
        elif target != "standard" and target not in ROOMS[home].libraries:
            yield f"{path}: includes <{included}>, but {ROOMS[home].folder} must not use {target} headers"


def classes(text):
    """Names of the classes, structs and enums that a file defines, without those inside a class or a function."""
    inside = 0  # of how many scopes that are no namespaces
    scopes = []
    for match in SCOPE.finditer(COMMENT_OR_STRING.sub(" ", text)):
        if match["close"]:
            if scopes:
                inside -= scopes.pop()
            continue
        if match["name"] and inside == 0:
            yield match["name"]
        scopes.append(not match["namespace"])
        inside += scopes[-1]


def old_name_findings(path, text):
    if path.startswith(OLD_NAME_ALLOWED):
        return
    if OLD_NAME in path.lower():
        yield f"{path}: the path has the old name"
    lines = [number for number, line in enumerate(text.splitlines(), 1) if OLD_NAME in line.lower()]
    for number in lines[1:] if path == "CHANGELOG.md" else lines:
        yield f"{path}:{number}: the old name"


def findings(files):
    """All findings in {path: text}."""
    homes = {}
    for path, text in files.items():
        if path.endswith((".h", ".cpp")):
            yield from include_findings(path, text)
            if room_of(path):
                for name in classes(text):
                    homes.setdefault(name, []).append(path)
        yield from old_name_findings(path, text)
    for name, paths in homes.items():
        if len(paths) > 1:
            yield f"two classes are called {name}: {', '.join(paths)}"


def checked_files(folder):
    """{path: text} of the files that git knows or would add, without binary ones."""
    command = ["git", "-C", folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True)
    files = {}
    for path in sorted(filter(None, listed.stdout.split("\0"))):
        file = pathlib.Path(folder, path)
        if file.is_file():
            content = file.read_bytes()
            files[path] = "" if b"\0" in content else content.decode(errors="replace")
    return files


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    found = list(findings(checked_files(folder)))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
