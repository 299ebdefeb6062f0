"""scripts/install_torch.sh: pip and the compiler work side by side, and what one of them says is not lost.

Usage: install_torch_test.py
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "install_torch.sh"


class InstallTorch(unittest.TestCase):
    def setUp(self):
        """A folder with the script, and in the places of scripts/venv.sh and cmake what a test says."""
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        for name in ("scripts", "bin", ".venv"):
            (self.root / name).mkdir()
        shutil.copy(SCRIPT, self.root / "scripts")
        self.write("scripts/venv.sh", "echo venv $1 >> calls")
        self.write("bin/cmake", "echo cmake $1 >> calls")

    def write(self, name, text):
        path = self.root / name
        path.write_text(f"#!/usr/bin/env bash\n{text}\n")
        path.chmod(0o755)

    def install(self):
        path = f"{self.root / 'bin'}:{os.environ['PATH']}"
        command = ["scripts/install_torch.sh", "build"]
        return subprocess.run(command, cwd=self.root, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=60)

    def calls(self):
        return (self.root / "calls").read_text().splitlines()

    def test_a_new_folder_is_compiled_while_torch_is_installed(self):
        # Each waits for the other.
        compiling, installing = (f"until grep -q '{what}' calls; do sleep 0.01; done" for what in ("cmake --build", "venv torch"))
        self.write("scripts/venv.sh", f"echo venv $1 >> calls; [ $1 = build ] || {compiling}; echo done $1 >> calls")
        self.write("bin/cmake", f"echo cmake $1 >> calls; {installing}")
        self.assertEqual(self.install().returncode, 0)
        found = self.calls()
        self.assertEqual(found[0], "venv build")
        self.assertIn("done torch", found)
        self.assertIn("cmake --preset", found)
        self.assertIn("cmake --build", found)

    def test_no_other_part_is_begun_once_torch_is_there(self):
        compiling = "until grep -q 'cmake --build' calls; do sleep 0.01; done"
        self.write("scripts/venv.sh", f"[ $1 = build ] || {{ echo $$ > pid; {compiling}; }}")
        installing = "until [ -s pid ]; do sleep 0.01; done; while kill -0 $(cat pid) 2>/dev/null; do sleep 0.01; done"
        self.write("bin/cmake", f"echo cmake $1 >> calls; [ $1 != --build ] || {{ {installing}; }}")
        self.assertEqual(self.install().returncode, 0)
        self.assertEqual(self.calls(), ["cmake --preset", "cmake --build"])

    def test_nothing_is_compiled_where_torch_is_there(self):
        for name in (".installed-torch", ".torch-is-given"):
            (self.root / ".venv" / name).touch()
            self.assertEqual(self.install().returncode, 0)
            (self.root / ".venv" / name).unlink()
        self.assertEqual(self.calls(), ["venv build", "venv torch"] * 2)

    def test_the_settings_of_a_folder_are_kept(self):
        (self.root / "build").mkdir()
        (self.root / "build" / "CMakeCache.txt").touch()
        self.assertEqual(self.install().returncode, 0)
        self.assertEqual(self.calls(), ["venv build", "venv torch"])

    def test_an_installation_that_fails_says_why(self):
        self.write("scripts/venv.sh", "[ $1 = build ] || { echo no space left; exit 1; }")
        found = self.install()
        self.assertEqual(found.returncode, 1)
        self.assertIn("no space left", found.stderr)

    def test_an_error_of_the_compiler_ends_the_installation(self):
        self.write("scripts/venv.sh", "[ $1 = build ] || { sleep 50 & echo $! > pid; wait; }")
        self.write("bin/cmake", "until [ -s pid ]; do sleep 0.01; done; [ $1 != --build ] || { echo wrong >&2; exit 3; }")
        found = self.install()
        self.assertEqual((found.returncode, found.stderr), (3, "wrong\n"))
        self.assertTrue(self.ends(int((self.root / "pid").read_text())), "pip goes on")

    def ends(self, process):
        """Within seconds; True if it does."""
        for _ in range(1000):
            try:
                if ") Z " in pathlib.Path(f"/proc/{process}/stat").read_text():
                    return True
            except OSError:  # it is gone
                return True
            time.sleep(0.01)
        return False


if __name__ == "__main__":
    unittest.main()
