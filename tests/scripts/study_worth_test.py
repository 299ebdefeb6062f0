"""scripts/study_worth.py: runs that train beside each other make the table of one comparison. Usage: study_worth_test.py PROGRAM"""

import contextlib
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

from chaos_parts import difference, facts_of, write_images
from study_worth import PartOfStudy, RunFailed
from worth_parts import BUDGET_ROWS, PARTS, Part

PROGRAM = sys.argv.pop()


def json_facts(folder):
    """What a comparison is judged by: not the weights, which are not kept."""
    return {name: fact for name, fact in facts_of(folder).items() if name.endswith((".json", ".jsonl"))}


class Study(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        write_images(self.folder / "data")
        self.flags = ["--data-dir", str(self.folder / "data"), "--quiet"]
        self.part = Part(
            *("tiny", "Tiny", "Is the table the same?"),
            {"data": "folder", "limit": 200, "width": 0.25, "epochs": 4, "batch_size": 20},
            ["el2n:score-epochs=1", "random:prune-ratio=0.3", "bls-infobatch"],
            seeds=2,
            target=0.3,
        )

    def study(self, flags=()):
        return PartOfStudy(self.part, PROGRAM, self.folder / "runs", self.folder / "results", [*self.flags, *flags])

    def train(self, study):
        """A line for every run that it trained."""
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            study.train_all(2)
            study.publish()
        return [line for line in printed.getvalue().splitlines() if line.startswith("[")]

    def whole_comparison(self):
        whole = self.folder / "whole"
        subprocess.run([PROGRAM, "compare", "--out", whole, *self.part.flags(), *self.flags], check=True, stdout=subprocess.DEVNULL)
        return whole

    def test_runs_beside_each_other_are_those_of_one_comparison(self):
        study = self.study()
        lines = self.train(study)
        self.assertEqual(len(lines), 2 * (len(BUDGET_ROWS) + 3))
        self.assertRegex(lines[-1], r"^\[14/14\] .* seed [01]; about 0 minutes left$")
        self.assertIsNone(difference(facts_of(self.whole_comparison()), facts_of(study.whole)))
        self.assertFalse(study.single.exists())

    def test_a_study_that_was_stopped_goes_on(self):
        first = self.study()
        first.train("full", 0)
        again = self.study()
        self.assertEqual((again.num_finished(), len(again.missing())), (1, 13))
        self.assertEqual(len(self.train(again)), 13)
        self.assertEqual(self.train(self.study()), [])

    def test_another_machine_goes_on_with_the_runs_that_are_kept(self):
        first = self.study()
        for method, seed in first.runs[:5]:
            first.train(method, seed)
        first.keep()
        shutil.rmtree(self.folder / "runs")
        again = self.study()
        self.assertEqual((again.num_finished(), len(again.missing())), (5, 9))
        self.train(again)
        made, expected = (json_facts(folder) for folder in (again.whole, self.whole_comparison()))
        self.assertEqual(made, expected)
        shutil.rmtree(self.folder / "runs")
        self.assertEqual(self.train(self.study()), [])

    def test_a_study_that_was_stopped_has_the_rows_that_are_finished(self):
        study = self.study()
        for method in [*BUDGET_ROWS, "bls-infobatch"]:
            for seed in range(2):
                study.train(method, seed)
        study.train("el2n:score-epochs=1", 1)
        with contextlib.redirect_stdout(io.StringIO()):
            study.publish()
        rows = json.loads(study.result.read_text())["summary"]["rows"]
        self.assertEqual([row["method"] for row in rows], [*BUDGET_ROWS, "bls-infobatch"])
        self.assertEqual(len(self.train(self.study())), 3)

    def test_a_run_that_fails_is_named_and_nothing_is_moved(self):
        study = self.study(["--epochs", "-1"])
        with self.assertRaisesRegex(RunFailed, r"^full seed ([01]): ended with 2, see .*full-seed\1\.log$"):
            self.train(study)
        self.assertFalse(study.whole.exists())

    def test_samples_are_those_that_the_runs_train_on(self):
        study = self.study()
        study.train("el2n:score-epochs=1", 0)
        # One epoch on all samples to score them, four on what is left.
        self.assertEqual(self.part.samples_of("el2n:score-epochs=1"), 200 * (1 + 0.7 * 4))
        self.assertEqual(self.part.samples_of("full"), 200 * 4)
        self.assertEqual(self.part.num_samples(), 2 * 200 * (4 + 5 * 0.7 * 4 + 1 + 0.7 * 4))
        # Classes of 5,000, 5,000 * 0.01^(1/9), ..., 50.
        self.assertAlmostEqual(PARTS["tail"].num_train(), sum(5000 * 0.01 ** (c / 9) for c in range(10)))
        self.assertGreater(min(part.num_samples() for part in PARTS.values()), 0)


if __name__ == "__main__":
    unittest.main()
