"""Runs core_bench and reads its result; shared by run.py and compare.py."""

import json
import os
import pathlib
import subprocess
import sys

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def core_bench(program, folder, max_samples, part, repetitions, min_time, scores_path=None, prefix="TAMIS", cores=None):
    """Runs the benchmarks that match `part`, in random order; returns {name: [entries of core_bench's result]}.

    On `cores`, or on those that this process may use.
    """
    result_path = pathlib.Path(folder) / "core.json"
    environment = dict(os.environ, **{f"{prefix}_BENCH_DIR": str(folder), f"{prefix}_BENCH_MAX_SAMPLES": str(max_samples)})
    if scores_path is not None:
        environment[f"{prefix}_BENCH_SCORES"] = str(scores_path)
    command = [str(program), f"--benchmark_min_time={min_time}", f"--benchmark_repetitions={repetitions}",
               "--benchmark_enable_random_interleaving=true", "--benchmark_report_aggregates_only=false",
               f"--benchmark_out={result_path}", "--benchmark_out_format=json", f"--benchmark_filter={part}"]
    if cores is not None:
        command = ["taskset", "--cpu-list", ",".join(map(str, sorted(cores))), *command]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{program} failed:\n{done.stderr}")
    measured = {}
    for entry in json.loads(result_path.read_text())["benchmarks"]:
        if entry["run_type"] == "iteration":
            entry["seconds"] = entry["real_time"] * UNITS[entry["time_unit"]]
            entry["processor_seconds"] = entry["cpu_time"] * UNITS[entry["time_unit"]]
            measured.setdefault(entry["run_name"].replace("/real_time", ""), []).append(entry)
    return measured
