"""scripts/soak.sh: rounds under load that count, are kept, and end at the first failure. Usage: soak_test.py"""

import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "soak.sh"


def contents(path):
    try:
        return path.read_bytes()
    except OSError:  # the process has ended
        return b""


class Soak(unittest.TestCase):
    def setUp(self):
        """A repository with a build folder of one test, which notes that it ran."""
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        self.build, self.notes = self.root / "build", self.root / "build" / "notes"
        self.build.mkdir()
        (self.root / ".gitignore").write_text("build\n")
        self.register(f'add_test(first "sh" "-c" "echo >> {self.notes}")')
        for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "First"]):
            self.git(*arguments)

    def git(self, *arguments):
        author = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
        subprocess.run(["git", *author, *arguments], cwd=self.root, check=True)

    def register(self, test):
        with (self.build / "CTestTestfile.cmake").open("a") as file:
            file.write(f"{test}\n")

    def soak(self, rounds, *arguments):
        command = [SCRIPT, self.build, str(rounds), *arguments]
        return subprocess.run(command, cwd=self.root, capture_output=True, text=True, timeout=100)

    def num_runs(self):
        return len(self.notes.read_text().splitlines())

    def test_rounds_that_passed_are_not_made_again(self):
        self.assertEqual(self.soak(2).returncode, 0)
        found = self.soak(3)
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertEqual([line[:7] for line in found.stdout.splitlines() if "round" in line], ["round 1", "round 2", "round 3"])
        self.assertIn("round 3 of 3: 100% tests passed, 0 tests failed out of 1", found.stdout)
        self.assertEqual(self.num_runs(), 3)

    def test_the_slowest_of_many_tests_do_not_end_it(self):
        for number in range(500):  # more text than a pipe holds
            self.register(f'add_test({"long" * 40}{number} "true")')
        found = self.soak(2)
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertIn("round 2 of 2: 100% tests passed, 0 tests failed out of 501", found.stdout)

    def test_rounds_of_other_sources_do_not_count(self):
        self.soak(1)
        (self.root / "source").write_text("changed")
        self.soak(1)
        self.soak(1)
        self.assertEqual(self.num_runs(), 3)

    def test_the_first_failure_ends_it_and_is_named(self):
        self.register('add_test(second "false")')
        found = self.soak(5)
        self.assertEqual(found.returncode, 1)
        self.assertIn("second (Failed)", found.stderr)
        self.assertIn("round 1 of 5 failed", found.stderr)
        self.assertEqual(self.num_runs(), 1)

    def test_what_takes_time_on_purpose_is_left_out_unless_asked_for(self):
        self.register('add_test(long "false")\nset_tests_properties(long PROPERTIES LABELS fuzz)')
        self.assertEqual(self.soak(1).returncode, 0)
        found = self.soak(2, "-L", "fuzz")
        self.assertEqual(found.returncode, 1)
        self.assertIn("long (Failed)", found.stderr)

    def test_the_first_round_names_the_slowest_tests(self):
        found = self.soak(1)
        self.assertRegex(found.stdout, r"the slowest, in seconds:\n[0-9.]+ first\n$")

    def test_nothing_is_left_running(self):
        self.soak(1)
        wanted = f"{SCRIPT}\0{self.build}\0".encode()
        self.assertEqual([path for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if wanted in contents(path)], [])


if __name__ == "__main__":
    unittest.main()
