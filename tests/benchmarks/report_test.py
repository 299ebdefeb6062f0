"""The table of `make bench` says what became slower, and whether others disturbed it."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks"))

import quiet
import report
import run


def result(plan, copy=1.0, **more):
    """A result with one row, whose times are these."""
    measured = {"memcpy/1000000": {"seconds": copy}, "plan/infobatch/1000000": {"seconds": plan}}
    return {"date": "2026-01-02T03:04:05", "commit": "0" * 40, "repetitions": 5, "measured": measured,
            "machine": {"cpu": "some", "avx512": False}, **more}


class RegressionsTest(unittest.TestCase):
    def test_a_ratio_more_than_a_tenth_worse_is_named_with_both_figures(self):
        text = report.regressions(result(plan=11.2), result(plan=10.0), color=False)
        self.assertIn("InfoBatch plan, N = 1e+06: 11.2 x the floor, 10 in the result of 2026-01-02", text)

    def test_it_is_red_in_a_terminal(self):
        text = report.regressions(result(plan=11.2), result(plan=10.0), color=True)
        self.assertTrue(text.startswith(report.RED) and text.endswith(report.PLAIN))

    def test_a_tenth_is_allowed(self):
        self.assertIn("No ratio", report.regressions(result(plan=10.9), result(plan=10.0), color=True))

    def test_a_slower_machine_is_no_regression(self):
        self.assertIn("No ratio", report.regressions(result(plan=20.0, copy=2.0), result(plan=10.0), color=True))

    def test_every_section_is_compared(self):
        def sections(worse):
            return {
                "parts": {"part/order/1000000": 3.0 * worse, "part/copy/1000000": 1.0},
                "package": {
                    "update": {"update_us": 20.0 * worse, "product_us": 10.0},
                    "epoch of a small CNN": {"own_ms": 1.0 * worse, "epoch_ms": 1000.0},
                    "plan/infobatch": {"ratio": 1.1 * worse},
                },
                "watching": {"logits": {"beyond_us": 100.0 * worse, "plain_us": 100.0}},
                "memory": [{"policy": "seta", "samples": 1000, "threads": 2, "bytes_per_sample": 8.0 * worse}],
            }

        text = report.regressions(result(plan=1.0, **sections(1.5)), result(plan=1.0, **sections(1.0)), color=False)
        for line in ("part of a plan: order of the 70 % that are kept, N = 1e+06: 4.5 x the copy, 3 in the result of",
                     "Python: update: 3 x the product, 2 in", "Python: epoch of a small CNN: 0.15 % of it, 0.1 in",
                     "Python: plan/infobatch: 1.65 x the core's, 1.1 in", "watched: logits: 2.5 x the plain one, 2 in",
                     "peak memory: seta, N = 1e+03, 2 threads: 12 bytes per sample, 8 in"):
            self.assertIn(line, text)
        same = report.regressions(result(plan=1.0, **sections(1.0)), result(plan=1.0, **sections(1.0)), color=False)
        self.assertIn("No ratio", same)

    def test_rows_that_the_kept_result_does_not_have_are_left_out(self):
        kept = result(plan=10.0)
        del kept["measured"]["plan/infobatch/1000000"]
        self.assertIn("No ratio", report.regressions(result(plan=20.0), kept, color=True))


class AimsTest(unittest.TestCase):
    def test_an_aim_is_reached_or_missed_by_the_ratio_of_this_result(self):
        self.assertIn("| InfoBatch plan | 1e+06 | at most 13 x the floor | 13 x | reached |", report.aims_table(result(plan=13.0)))
        self.assertIn("| 13.2 x | missed |", report.aims_table(result(plan=13.2)))

    def test_the_limits_of_the_package_are_aims(self):
        update = {"batch": 128, "update_us": 14.0, "beyond_product_us": 5.0}
        watched = {"beyond_us": 59.0, "limit_us": 60.0}
        package = {"update": {**update, "limit_us": 4.0}, "per-sample update": {**update, "limit_us": 15.0}}
        text = report.aims_table(result(plan=13.0, package=package, watching={"logits": watched}))
        self.assertIn("| update, batch of 128 | | at most 4 us beyond the product | 5.00 us | missed |", text)
        self.assertIn("| per-sample update, batch of 128 | | at most 15 us in all | 14.00 us | reached |", text)
        self.assertIn("| watching logits | | at most 60 us | 59 us | reached |", text)

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


class CommittedTest(unittest.TestCase):
    def test_the_newest_result_is_that_of_the_commit_not_that_of_the_folder(self):
        with tempfile.TemporaryDirectory() as scratch, unittest.mock.patch.object(run, "ROOT", pathlib.Path(scratch)):
            folder = run.ROOT / "benchmarks" / "results"
            folder.mkdir(parents=True)
            git = ["git", "-C", scratch, "-c", "user.name=A", "-c", "user.email=a@example.com"]
            subprocess.run([*git, "init", "--quiet"], check=True)
            self.assertIsNone(run.newest_committed("old"))
            days = [("core-2026-01-01", "old"), ("core-2026-01-02", "old"), ("core-2026-01-03", "new"), ("watching", "old")]
            for name, machine in days:
                (folder / f"{name}.json").write_text(json.dumps({"machine": machine, "name": name}))
            subprocess.run([*git, "add", "."], check=True)
            subprocess.run([*git, "commit", "--quiet", "--message", "First"], check=True)
            (folder / "core-2026-01-02.json").write_text("{}")
            (folder / "core-2026-01-04.json").write_text(json.dumps({"machine": "old", "name": "not committed"}))
            self.assertEqual(run.newest_committed("old")["name"], "core-2026-01-02")
            self.assertEqual(run.newest_committed("new")["name"], "core-2026-01-03")


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
        results, least = quiet.measure("a part", iter("abc").__next__, say=said.append)
        self.assertEqual((results, least, len(said)), (["c", "b", "a"], 0.01, 2))
        self.assertIn("a part: others used 1.5 cores meanwhile; measuring again", said[0])

    def test_every_section_is_guarded_and_the_worst_disturbance_counts(self):
        others = {"core_bench": 0.02, "parts_bench": 0.03, "overhead.py": 0.04, "memory_bench": 1.2, "plain Python": 0.05}

        def disturbed(name, function, **_):
            return [function()], next(cores for start, cores in others.items() if name.startswith(start))

        class Arguments:
            build, filter, core, all_cores, repetitions, min_time = ".", "^plan", 0, {0, 1}, 1, 0.1

        patches = [unittest.mock.patch.object(run, name, unittest.mock.Mock(return_value={"x": {"seconds": 1.0}}))
                   for name in ("run_part", "peers_of_size", "memory_of", "figures_of")]
        patches += [unittest.mock.patch.object(run.measure, "core_bench", return_value={"x": [{"seconds": 1.0}]}),
                    unittest.mock.patch.object(run.pathlib.Path, "exists", return_value=True),
                    unittest.mock.patch.object(quiet, "measure", disturbed)]
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)
        quietly, found = run.Quietly(), []
        for section in (lambda: run.run_core(quietly, Arguments, "", "", 1), lambda: run.run_parts(quietly, Arguments, "", 1),
                        lambda: run.run_package(quietly, Arguments, "", "overhead.py"),
                        lambda: run.run_peers(quietly, Arguments, [0.0], "", [1]),
                        lambda: run.run_memory(quietly, Arguments, "", [1])):
            section()
            found.append(quietly.others)
        self.assertEqual(found, [0.02, 0.03, 0.04, 0.05, 1.2])

    def test_the_largest_size_is_run_on_all_cores_too(self):
        runs = []

        def memory_of(args, folder, num_samples, policy, cores):
            runs.append((num_samples, policy, list(cores)))

        class Arguments:
            core, all_cores = 1, {0, 1, 2}

        with unittest.mock.patch.object(run, "memory_of", memory_of):
            run.run_memory(lambda name, function, *arguments: [function(*arguments)], Arguments, "", [10, 100])
        self.assertEqual([one for one in runs if one[1] == "seta"],
                         [(10, "seta", [1]), (100, "seta", [1]), (100, "seta", [0, 1, 2])])


if __name__ == "__main__":
    unittest.main()
