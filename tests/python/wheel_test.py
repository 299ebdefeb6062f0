#!/usr/bin/env python3
"""The source distribution builds a wheel that is what it says, and works where it is installed.

python wheel_test.py SOURCES FOLDER: without a network, with the build tools of this interpreter. FOLDER is for the files.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile


def run(*command, **options):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{result.stdout}{result.stderr}")
    return result.stdout + result.stderr


def check(holds, message):
    if not holds:
        sys.exit(f"wheel_test.py: {message}")


def main():
    sources, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, sources)

    (sdist,) = folder.glob("tamis-*.tar.gz")
    with tarfile.open(sdist) as archive:
        parts = {pathlib.PurePosixPath(name).parts[1] for name in archive.getnames() if "/" in name}
    check(not parts & {"build", "report", "tests", "benchmarks"}, f"the source distribution holds {sorted(parts)}")

    (wheel,) = folder.glob("tamis-*.whl")
    has_stable_abi = sys.version_info >= (3, 12)
    check(("cp312-abi3" in wheel.name) == has_stable_abi, f"the wheel is named {wheel.name}")
    if sys.platform == "linux":
        check("manylinux" in run(sys.executable, "-m", "auditwheel", "show", wheel), "auditwheel names no manylinux tag")
    if has_stable_abi:
        run(sys.executable, "-m", "abi3audit", "--strict", wheel)

    site = folder / "site"
    run(sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", site, wheel)
    output = run(sys.executable, "-m", "tamis", cwd=folder, env=dict(os.environ, PYTHONPATH=str(site)))
    check("core: ok" in output, output)


if __name__ == "__main__":
    main()
