"""scripts/announce.sh: says what is left to do, and the figures of the steps that it names. Usage: announce_test.py"""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "announce.sh"
INDEXES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PYTHON")


def figures():
    """{step: minutes at least, at most, megabytes}, as the script lists them."""
    found = re.findall(r"^(\w+)=\((\d+) (\d+) (\d+)\)$", SCRIPT.read_text(), re.MULTILINE)
    return {name: tuple(map(int, numbers)) for name, *numbers in found}


def total(*steps):
    """What the script says of these steps."""
    least, most, megabytes = map(sum, zip(*(figures()[step] for step in steps)))
    minutes = f"{least} to {most} minutes" if least != most else f"{most} minute{'s' if most > 1 else ''}"
    return f"about {minutes} on two free cores, {megabytes} MB of disk ("


class Announce(unittest.TestCase):
    def setUp(self):
        """A fresh clone."""
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)

    def announce(self, what, **more):
        environment = {name: value for name, value in os.environ.items() if name not in INDEXES} | more
        command = [SCRIPT, what, "build"]
        return subprocess.run(command, cwd=self.root, env=environment, check=True, capture_output=True, text=True).stdout

    def has(self, name, mode=0o644):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        path.chmod(mode)

    def test_a_fresh_clone_has_every_step(self):
        self.assertIn(total("torch", "program", "training"), self.announce("run"))
        self.assertIn(total("torch", "everything", "frameworks", "tests", "integrations"), self.announce("test"))

    def test_what_is_done_is_not_announced(self):
        self.has(".venv/.installed-torch")
        self.has("build/bin/tamis-training", 0o755)
        text = self.announce("run")
        self.assertIn(total("training"), text)
        self.assertNotIn("torch", text)
        self.assertNotIn("build", text)

    def test_tests_that_are_built_are_run_again_only(self):
        for name in (".venv/.torch-is-given", ".venv-frameworks/.installed-frameworks", "build/tests/core"):
            self.has(name)
        text = self.announce("test")
        self.assertIn(total("tests", "integrations"), text)
        self.assertTrue(text.startswith("make test: run every test, test the integrations"), text)

    def test_the_program_alone_does_not_make_the_tests(self):
        self.has("build/bin/tamis-training", 0o755)
        self.assertIn("build everything", self.announce("test"))

    def test_the_larger_torch_is_named_where_it_would_be_installed(self):
        said = "PyPI's torch is the CUDA build, 6,000 MB more"
        self.assertIn(said, self.announce("run"))
        for index in INDEXES:
            self.assertNotIn(said, self.announce("run", **{index: "given"}))
        self.has(".venv/.installed-torch")
        self.assertNotIn(said, self.announce("run"))

    def test_the_page_for_contributors_has_the_same_minutes(self):
        first = total("torch", "everything", "frameworks", "tests", "integrations")
        again = total("tests", "integrations")
        minutes = [re.search(r"about (.*?)(?: minutes)? on", text)[1] for text in (first, again)]
        row = next(line for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines() if line.startswith("| `make test` |"))
        self.assertTrue(row.endswith(f"| {minutes[0]} minutes the first time, then {minutes[1]} |"), row)


if __name__ == "__main__":
    unittest.main()
