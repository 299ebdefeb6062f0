#!/usr/bin/env python3
"""scripts/venv.sh with an environment that has torch and a tool of ours: torch is taken from there, the tool is in .venv/bin.

python venv_test.py SOURCES FOLDER: without PyPI. FOLDER is for the files.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import venv
import zipfile

WHEEL = {
    "tool.py": "def main(): print('the tool runs')\n",
    "tool-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tool\nVersion: 1.0\n",
    "tool-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "tool-1.0.dist-info/entry_points.txt": "[console_scripts]\ntool = tool:main\n",
    "tool-1.0.dist-info/RECORD": "",
}


def run(*command, **options):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def main(sources, folder):
    shutil.rmtree(folder, ignore_errors=True)
    clone = folder / "clone"
    (clone / "scripts").mkdir(parents=True)
    (clone / "requirements").mkdir()
    shutil.copy(sources / "scripts/venv.sh", clone / "scripts")
    wheel = folder / "tool-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in WHEEL.items():
            archive.writestr(name, text)
    for name in ["torch", "test"]:
        (clone / f"requirements/{name}.txt").write_text(f"{wheel}\n")

    given = folder / "given"
    venv.create(given, with_pip=True)
    run(given / "bin/python", "-m", "pip", "install", "--no-index", wheel)
    packages = pathlib.Path(run(given / "bin/python", "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])").strip())
    (packages / "torch").mkdir()
    (packages / "torch/__init__.py").write_text("__version__ = 'given'\n")

    environment = {name: value for name, value in os.environ.items() if name != "VENV"}
    environment["PYTHON"] = str(given / "bin/python")
    run("scripts/venv.sh", "torch", "test", cwd=clone, env=environment)
    if run(clone / ".venv/bin/tool") != "the tool runs\n":
        sys.exit("venv_test.py: .venv/bin/tool does not run")
    if run(clone / ".venv/bin/python", "-c", "import torch; print(torch.__version__)") != "given\n":
        sys.exit("venv_test.py: torch is not that of the given environment")


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:]))
