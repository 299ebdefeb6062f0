#!/usr/bin/env python3
"""The source distribution that is released builds a wheel that is what it says, and works where it is installed.

python wheel_test.py SOURCES FOLDER: without PyPI, with the build tools of this interpreter. FOLDER is for the files.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile

# A training program as users write them, without torch: it writes the folder of a run, a state and a recording.
TRAINING = """
import argparse, json, pathlib
import tamis
parser = argparse.ArgumentParser()
for flag, kind in {"--method": str, "--seed": int, "--out": pathlib.Path}.items():
    parser.add_argument(flag, type=kind, required=True)
args = parser.parse_args()
args.out.mkdir(parents=True)
(args.out / "config.json").write_text(json.dumps({
    "format": "tamis-run", "format_version": 2, "method": {"name": args.method}, "seed": args.seed, "epochs": 4,
    "data": {"name": "numbers", "num_train": 1000}, "metrics": [{"name": "loss", "direction": "lower", "headline": True}]}))
policy = "none" if args.method == "full" else "infobatch"
pruner = tamis.Pruner(1000, 4, policy=policy, score="batch-loss", seed=args.seed)
pruner.record(args.out / "record")
with open(args.out / "metrics.jsonl", "w") as metrics:
    for epoch in range(4):
        pruner.start_epoch(epoch)
        plan = pruner.plan
        for begin in range(0, len(plan), 50):
            samples = plan.samples(begin, min(50, len(plan) - begin))
            pruner.observe(begin, len(samples), [1.0 + (s * 37 % 100) / 100 for s in samples])
        pruner.record_true_losses([1.0 + (s * 37 % 100) / 100 for s in pruner.recorded_samples.tolist()])
        line = {"epoch": epoch, "samples": len(plan), "pruned": 1000 - len(plan), "train_seconds": 1.0, "values": {"loss": 1.5}}
        metrics.write(json.dumps(line) + "\\n")
pruner.flush_recording()
pruner.save(args.out / "state.safetensors")
"""


def run(*command, code=0, **options):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if result.returncode != code:
        sys.exit(f"{' '.join(map(str, command))}: exit code {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout + result.stderr


def check(holds, message):
    if not holds:
        sys.exit(f"wheel_test.py: {message}")


def check_sdist(sdist):
    with tarfile.open(sdist) as archive:
        names = ["/".join(pathlib.PurePosixPath(name).parts[1:]) for name in archive.getnames()]
    parts = {name.split("/")[0] for name in names}
    check(not parts & {"build", "tests", "benchmarks", ".git"}, f"the source distribution holds {sorted(parts)}")
    check(not any("node_modules" in name for name in names), "the source distribution holds packages of npm")
    for name in ["bundled/report_template.cpp", "bundled/include/CLI/CLI.hpp", "bundled/licenses/libfmt-dev.txt"]:
        check(name in names, f"the source distribution has no {name}")


def check_wheel(wheel):
    has_stable_abi = sys.version_info >= (3, 12)
    check(("cp312-abi3" in wheel.name) == has_stable_abi, f"the wheel is named {wheel.name}")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for name in ["tamis/bin/tamis", "tamis/licenses/libcli11-dev.txt", "tamis/py.typed"]:
        check(name in names, f"the wheel has no {name}, but {names}")
    if sys.platform == "linux":
        # Looks at the program too: both need nothing but the system's own libraries.
        shown = run(sys.executable, "-m", "auditwheel", "show", wheel)
        check("manylinux" in shown, f"auditwheel names no manylinux tag:\n{shown}")
    if has_stable_abi:
        run(sys.executable, "-m", "abi3audit", "--strict", wheel)


def check_commands(tamis, folder, environment):
    """Every command of the program as pip installed it, on what a training with the installed package wrote."""

    def command(*arguments, **options):
        return run(tamis, *arguments, cwd=folder, env=environment, **options)

    (folder / "train.py").write_text(TRAINING)
    command("compare", "--command", f"{sys.executable} train.py", "--methods", "full", "bls-infobatch", "--seeds", "0", "1", "2",
            "--out", "runs")  # fmt: skip
    command("report", "runs", "--out", "report.html")
    check("bls-infobatch" in (folder / "report.html").read_text(), "the report does not name its method")
    of_run = folder / "runs" / "bls-infobatch-seed0"
    check("1,000" in command("inspect", of_run / "state.safetensors"), "inspect does not know the number of samples")
    check("wrote" in command("analyze", of_run), "analyze wrote no results")
    command("plan", "--scores", "-", "--policy", "infobatch", input="[1, 2, 3, 4]")
    command("simulate", "--epochs", "2", "--samples", "1000")
    command("replay", of_run, "--score", "batch-loss")
    check("pip install tamis[torch]" in command("train", "--epochs", "1", code=1), "train does not say what it needs")


def main():
    sources, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, sources / "scripts" / "sdist.py", folder)
    (sdist,) = folder.glob("tamis-*.tar.gz")
    check_sdist(sdist)
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", folder, sdist)
    (wheel,) = folder.glob("tamis-*.whl")
    check_wheel(wheel)

    site = folder / "site"
    run(sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", site, wheel)
    environment = dict(os.environ, PYTHONPATH=str(site))
    output = run(sys.executable, "-m", "tamis", cwd=folder, env=environment)
    for part in ["core: ok", "program: ok"]:
        check(part in output, output)
    check_commands(site / "bin" / "tamis", folder, environment)


if __name__ == "__main__":
    main()
