#!/usr/bin/env python3
"""Makes the source distribution that is released: one that builds the whole wheel with a compiler and PyPI alone.

scripts/sdist.py FOLDER

`python -m build --sdist`, and in its folder `bundled` what the program needs beside our sources: the headers of CLI11, fmt and
nlohmann-json with their licences, from Debian's packages, and the page of `tamis report`, built with Node.js.
cmake/program_parts.cmake uses them.
"""

import gzip
import io
import pathlib
import subprocess
import sys
import tarfile
import tempfile

SOURCES = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = pathlib.Path("/usr/include")
DOCUMENTS = pathlib.Path("/usr/share/doc")
# Folder of the headers, and the package that has them.
LIBRARIES = {"CLI": "libcli11-dev", "fmt": "libfmt-dev", "nlohmann": "nlohmann-json3-dev"}


def run(*command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=SOURCES)
    if result.returncode != 0:
        sys.exit(f"sdist.py: {' '.join(map(str, command))} failed:\n{result.stdout}{result.stderr}")


def headers():
    """(name in the archive, content) of every header and licence."""
    for folder, package in LIBRARIES.items():
        licence = DOCUMENTS / package / "copyright"
        if not (INCLUDE / folder).is_dir() or not licence.exists():
            sys.exit(f"sdist.py: {INCLUDE / folder} or {licence} is missing; install {' '.join(LIBRARIES.values())}")
        yield f"licenses/{package}.txt", licence.read_bytes()
        for path in sorted((INCLUDE / folder).rglob("*")):
            if path.is_file():
                yield f"include/{path.relative_to(INCLUDE)}", path.read_bytes()


def page():
    report = SOURCES / "report"
    run("cmake", "-D", "NPM=npm", "-D", f"FOLDER={report}", "-P", report / "install_packages.cmake")
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "report_template.cpp"
        run("node", report / "build.mjs", source.with_suffix(".html"), source)
        yield source.name, source.read_bytes()


def add(sdist, files):
    """Rewrites the archive with `files` in its folder `bundled`; times are those of the others."""
    with tarfile.open(sdist) as old, io.BytesIO() as content:
        members = [(member, old.extractfile(member)) for member in old.getmembers()]
        root = pathlib.PurePosixPath(members[0][0].name).parts[0]
        with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as new:
            for member, file in members:
                new.addfile(member, file)
            for name, data in files:
                entry = tarfile.TarInfo(f"{root}/bundled/{name}")
                entry.size, entry.mtime = len(data), members[0][0].mtime
                new.addfile(entry, io.BytesIO(data))
        sdist.write_bytes(gzip.compress(content.getvalue(), mtime=0))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "build", "--no-isolation", "--sdist", "--outdir", folder)
        (made,) = pathlib.Path(folder).glob("tamis-*.tar.gz")
        add(made, [*headers(), *page()])
        target = pathlib.Path(sys.argv[1])
        target.mkdir(parents=True, exist_ok=True)
        (target / made.name).write_bytes(made.read_bytes())
    print(target / made.name)


if __name__ == "__main__":
    main()
