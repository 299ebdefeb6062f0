"""The table of `make bench` says what became slower, and whether others disturbed it."""

import pathlib
import sys
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks"))

import quiet
import report


def result(plan, copy=1.0, **more):
    """A result with one row, whose times are these."""
    measured = {"memcpy/1000000": {"seconds": copy}, "plan/infobatch/1000000": {"seconds": plan}}
    return {"date": "2026-01-02T03:04:05", "commit": "0" * 40, "repetitions": 5, "measured": measured,
            "machine": {"cpu": "some", "avx512": False}, **more}


class RegressionsTest(unittest.TestCase):
    def test_a_ratio_more_than_a_tenth_worse_is_named_with_both_figures(self):
        text = report.regressions(result(plan=11.2), result(plan=10.0), color=False)
        self.assertIn("InfoBatch plan, N = 1e+06: 11.2 x the floor, 10 x in the result of 2026-01-02", text)

    def test_it_is_red_in_a_terminal(self):
        text = report.regressions(result(plan=11.2), result(plan=10.0), color=True)
        self.assertTrue(text.startswith(report.RED) and text.endswith(report.PLAIN))

    def test_a_tenth_is_allowed(self):
        self.assertIn("No ratio", report.regressions(result(plan=10.9), result(plan=10.0), color=True))

    def test_a_slower_machine_is_no_regression(self):
        self.assertIn("No ratio", report.regressions(result(plan=20.0, copy=2.0), result(plan=10.0), color=True))

    def test_rows_that_the_kept_result_does_not_have_are_left_out(self):
        kept = result(plan=10.0)
        del kept["measured"]["plan/infobatch/1000000"]
        self.assertIn("No ratio", report.regressions(result(plan=20.0), kept, color=True))


class AimsTest(unittest.TestCase):
    def test_an_aim_is_reached_or_missed_by_the_ratio_of_this_result(self):
        self.assertIn("| InfoBatch plan | 1e+06 | at most 13 x the floor | 13 x | reached |", report.aims_table(result(plan=13.0)))
        self.assertIn("| 13.2 x | missed |", report.aims_table(result(plan=13.2)))

    def test_what_was_not_measured_has_no_row(self):
        self.assertNotIn("SeTa", report.aims_table(result(plan=13.0)))


class SectionsTest(unittest.TestCase):
    def test_a_later_section_of_the_same_commit_joins_the_result(self):
        kept = result(plan=10.0, others_used_cores=0.0, memory=[1])
        later = {**result(plan=0.0), "measured": {"load/1000000": {"seconds": 3.0}}, "others_used_cores": 0.05, "parts": 2}
        merged = report.merged(kept, later)
        self.assertEqual((merged["memory"], merged["parts"], merged["others_used_cores"]), ([1], 2, 0.05))
        self.assertEqual(merged["measured"]["plan/infobatch/1000000"], {"seconds": 10.0})
        self.assertEqual(merged["measured"]["load/1000000"], {"seconds": 3.0})

    def test_a_section_of_another_commit_is_refused(self):
        later = {**result(plan=1.0, others_used_cores=0.0), "commit": "1" * 40}
        with self.assertRaisesRegex(SystemExit, "is of commit 000000000000, not of this one"):
            report.merged(result(plan=10.0, others_used_cores=0.0), later)


class DisturbanceTest(unittest.TestCase):
    def test_a_disturbed_result_says_so(self):
        self.assertIn("Others used 1.3 cores", report.provenance(result(plan=1.0, others_used_cores=1.3)))
        self.assertNotIn("Others", report.provenance(result(plan=1.0, others_used_cores=0.02)))
        self.assertFalse(report.was_disturbed(result(plan=1.0)))

    def test_what_was_disturbed_is_measured_again_until_it_is_quiet(self):
        others = iter([1.5, 0.7, 0.01])
        said = []
        watch, quiet.Watch = quiet.Watch, lambda: unittest.mock.Mock(others=lambda: next(others))
        self.addCleanup(setattr, quiet, "Watch", watch)
        results, least = quiet.measure("a part", lambda: "time", say=said.append)
        self.assertEqual((len(results), least, len(said)), (3, 0.01, 2))
        self.assertIn("a part: others used 1.5 cores meanwhile; measuring again", said[0])


if __name__ == "__main__":
    unittest.main()
