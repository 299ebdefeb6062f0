"""scripts/chaos.py: what it takes for a fault of a process that was not killed. Usage: chaos_test.py"""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

from chaos_parts import Team, difference, faults_of, without_times


class Chaos(unittest.TestCase):
    def test_a_process_ends_well_or_with_one_line_of_ours(self):
        self.assertEqual(faults_of([(0, ""), (0, "tamis: a warning"), (1, "tamis: rank 1 has died")]), [])

    def test_an_abort_a_report_and_silence_are_faults(self):
        for answer in [
            (-6, "tamis: rank 1 has died"),
            (1, "==1==ERROR: AddressSanitizer: heap-use-after-free"),
            (1, "tamis: rank 1 has died\n[W socket.cpp] Connection reset by peer"),
            (1, ""),
            (None, "still ran after 600 seconds"),
        ]:
            with self.subTest(answer=answer):
                self.assertEqual(len(faults_of([(0, ""), answer])), 1)

    def test_no_process_of_a_team_outlives_it(self):
        with self.assertRaises(KeyError), Team([["sleep", "1000"]] * 2, [{}, {}]) as team:
            raise KeyError
        self.assertEqual([process.returncode for process in team.processes], [-9, -9])

    def test_times_may_differ_and_nothing_else(self):
        def facts(seconds, value):
            rows = [{"train_seconds_mean": seconds, "runs": [{"value": value, "train_seconds": seconds}]}]
            return {"summary.json": without_times({"rows": rows})}

        self.assertIsNone(difference(facts(1, 0.5), facts(2, 0.5)))
        self.assertEqual(difference(facts(1, 0.5), facts(1, 0.6)), "summary.json")
        self.assertEqual(difference({}, facts(1, 0.5)), "summary.json")


if __name__ == "__main__":
    unittest.main()
