"""Turns a benchmark result into the table of ratios."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "python"))

import overhead  # noqa: E402
import results  # noqa: E402
import watching  # noqa: E402
import quiet  # noqa: E402


def header(args):
    """Date, machine and commit of a result."""
    return {**results.header(), "repetitions": args.repetitions}


# Operation, benchmark name, peer's name, floor's name. {n} is the number of samples.
ROWS = [
    ("score update, B = 32", "update/batch-loss/32/{n}", "python_update/32/{n}", "random_writes/32/{n}"),
    ("score update, B = 128", "update/batch-loss/128/{n}", "python_update/128/{n}", "random_writes/128/{n}"),
    ("score update, B = 1024", "update/batch-loss/1024/{n}", "python_update/1024/{n}",
     "random_writes/1024/{n}"),
    ("BLR update against BLS, B = 32", "update/reconstruction/32/{n}", None, "update/batch-loss/32/{n}"),
    ("BLR update against BLS, B = 128", "update/reconstruction/128/{n}", None, "update/batch-loss/128/{n}"),
    ("BLR update against BLS, B = 1024", "update/reconstruction/1024/{n}", None, "update/batch-loss/1024/{n}"),
    ("InfoBatch plan", "plan/infobatch/{n}", "python_plan/infobatch/{n}", "memcpy/{n}"),
    ("InfoBatch plan against torch", "plan/infobatch/{n}", "torch_plan/infobatch/{n}", "memcpy/{n}"),
    ("InfoBatch plan, handed out as int64", "plan_and_hand_out/infobatch/{n}", "python_plan/infobatch/{n}",
     "memcpy/{n}"),
    ("InfoBatch plan, homogeneous batches", "plan_homogeneous/infobatch/{n}", "python_plan/infobatch/{n}",
     "plan/infobatch/{n}"),
    ("SeTa plan, 10 groups", "plan/seta/{n}", "python_plan/seta/{n}", "memcpy/{n}"),
    ("random plan", "plan/random-dynamic/{n}", "torch_randperm/{n}", "memcpy/{n}"),
    ("InfoBatch plan against randperm", "plan/infobatch/{n}", "torch_randperm/{n}", "std_shuffle/{n}"),
    ("full shuffle", "plan/none/{n}", "torch_randperm/{n}", "std_shuffle/{n}"),
    ("epsilon-greedy plan", "plan/epsilon-greedy/{n}", None, "memcpy/{n}"),
    ("UCB plan", "plan/ucb/{n}", None, "memcpy/{n}"),
    ("trim plan", "plan/trim/{n}", None, "memcpy/{n}"),
    ("save", "save/{n}", "torch_save/{n}", "floor_write/{n}"),
    ("load", "load/{n}", "torch_load/{n}", None),
    ("InfoBatch plan, all cores, against one", "threads/plan/infobatch/{n}", None, "plan/infobatch/{n}"),
    ("SeTa plan, all cores, against one", "threads/plan/seta/{n}", None, "plan/seta/{n}"),
    ("load, all cores, against one", "threads/load/{n}", None, "load/{n}"),
]


def duration(seconds):
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s"


# The rows of the README.
SHORT_TITLES = ("score update, B = 128", "InfoBatch plan", "SeTa plan, 10 groups", "full shuffle", "save", "load")


def short_table(result):
    """Markdown: the operations that users ask about, one column per size."""
    measured = result["measured"]
    sizes = sizes_of(result)
    lines = ["| operation | " + " | ".join(f"N = {n:.0e}" for n in sizes) + " | faster than plain Python or torch |",
             "|---|" + "--:|" * (len(sizes) + 1)]
    for title, own, peer, _ in ROWS:
        if title not in SHORT_TITLES:
            continue
        times, ratios = [], []
        for n in sizes:
            time = measured.get(own.format(n=n))
            times.append(duration(time["seconds"]) if time else "")
            other = measured.get(peer.format(n=n))
            if time and other:
                ratios.append(f"{other['seconds'] / time['seconds']:.3g}")
        lines.append(f"| {title} | " + " | ".join(times) + " | " + " / ".join(ratios) + " x |")
    lines += ["", provenance(result)]
    return "\n".join(lines)


def merged(kept, measured):
    """A result with what was measured later put in; it must be of the same code."""
    if kept["commit"] != measured["commit"]:
        sys.exit(f"the result of {kept['date'][:10]} is of commit {kept['commit'][:12]}, not of this one: measure all of it")
    result = {**kept, **{name: value for name, value in measured.items() if name != "measured"}}
    result["measured"] = {**kept["measured"], **measured["measured"]}
    result["others_used_cores"] = max(kept["others_used_cores"], measured["others_used_cores"])
    return result


def sizes_of(result):
    return sorted({int(name.rsplit("/", 1)[1]) for name in result["measured"] if name.startswith("memcpy/")})


def was_disturbed(result):
    return result.get("others_used_cores", 0.0) > quiet.LIMIT


def provenance(result):
    disturbance = (f" Others used {result['others_used_cores']:.1f} cores meanwhile: the figures are too high."
                   if was_disturbed(result) else "")
    return (f"Measured {result['date'][:10]} on one core of {result['machine']['cpu']}"
            f"{' (AVX-512)' if result['machine']['avx512'] else ' (AVX2)'}, "
            f"commit {result['commit'][:12]}, best of {result['repetitions']}.{disturbance}")


# How much worse a ratio may be than the one of the committed result.
TOLERANCE = 1.10
RED, PLAIN = "\033[31m", "\033[0m"


def ratios(result):
    """{operation: (ratio, of what)}, measured side by side in one run; more is worse."""
    measured, parts = result["measured"], result.get("parts", {})
    found = {}
    for title, own, peer, floor in ROWS:
        for n in sizes_of(result):
            time, base = (measured.get(name.format(n=n)) for name in (own, floor or peer))
            if time and base:
                found[f"{title}, N = {n:.0e}"] = time["seconds"] / base["seconds"], f"x the {'floor' if floor else 'peer'}"
    for part, n in (name.split("/")[1:] for name in parts if name.startswith("part/")):
        if part != "copy":
            found[f"part of a plan: {PART_TITLES[part]}, N = {int(n):.0e}"] = (
                parts[f"part/{part}/{n}"] / parts[f"part/copy/{n}"], "x the copy")
    for name, f in result.get("package", {}).items():
        if "update_us" in f:
            found[f"Python: {name}"] = f["update_us"] / f["product_us"], "x the product"
        elif "epoch_ms" in f:
            found[f"Python: {name}"] = 100 * f["own_ms"] / f["epoch_ms"], "% of it"
        else:
            found[f"Python: {name}"] = f["ratio"], "x the core's"
    for name, f in result.get("watching", {}).items():
        found[f"watched: {name}"] = 1 + f["beyond_us"] / f["plain_us"], "x the plain one"
    for entry in result.get("memory", []):
        title = f"{entry['policy']}, N = {entry['samples']:.0e}, {threads_of(entry)}"
        found[f"peak memory: {title}"] = entry["bytes_per_sample"], "bytes per sample"
        if "file_bytes_per_sample" in entry:
            found[f"state file: {title}"] = entry["file_bytes_per_sample"], "bytes per sample"
    return found


def regressions(result, committed, color):
    """Text: the operations that are more than 10 % worse than in the committed result, as ratios within each run."""
    before = ratios(committed)
    date = committed["date"][:10]
    lines = [f"{what}: {ratio:.3g} {of}, {before[what][0]:.3g} in the result of {date}"
             for what, (ratio, of) in ratios(result).items()
             if what in before and ratio > TOLERANCE * before[what][0]]
    if not lines:
        return f"No ratio is more than 10 % worse than in the result of {date}."
    text = "\n".join(["Worse by more than 10 %:", *lines])
    return f"{RED}{text}{PLAIN}" if color else text


# Operation, N, what its time is compared with, and the aim: times the floor at most, or times faster than the peer at least.
AIMS = [
    ("score update, B = 128", 10**6, "floor", 1.3), ("score update, B = 128", 10**6, "peer", 150),
    ("InfoBatch plan", 10**6, "floor", 13), ("InfoBatch plan", 10**7, "floor", 8), ("InfoBatch plan", 10**8, "floor", 9),
    ("InfoBatch plan", 10**6, "peer", 120), ("InfoBatch plan", 10**7, "peer", 70),
    ("SeTa plan, 10 groups", 10**6, "floor", 45), ("SeTa plan, 10 groups", 10**7, "floor", 14),
    ("SeTa plan, 10 groups", 10**8, "floor", 11), ("SeTa plan, 10 groups", 10**6, "peer", 2000),
    ("InfoBatch plan against randperm", 10**6, "peer", 5), ("random plan", 10**6, "peer", 5),
    ("BLR update against BLS, B = 128", 10**6, "floor", 2),
    ("save", 10**8, "peer", 2.5), ("save", 10**8, "floor", 1.3), ("load", 10**8, "peer", 5),
]


def aims_table(result):
    """Markdown: what was aimed at, and what this result has."""
    rows = {title: {"own": own, "peer": peer, "floor": floor} for title, own, peer, floor in ROWS}
    lines = ["| operation | N | aim | result | |", "|---|--:|--:|--:|---|"]
    for title, n, kind, limit in AIMS:
        own, other = (result["measured"].get(rows[title][which].format(n=n)) for which in ("own", kind))
        if not own or not other:
            continue
        ratio = own["seconds"] / other["seconds"]
        is_reached = ratio <= limit if kind == "floor" else 1 / ratio >= limit
        aim, found = ((f"at most {limit:g} x the floor", f"{ratio:.3g} x") if kind == "floor"
                      else (f"{limit:g} x faster", f"{1 / ratio:.3g} x"))
        lines.append(f"| {title} | {n:.0e} | {aim} | {found} | {verdict(is_reached)} |")
    for section, judge in (("package", overhead.judge), ("watching", watching.judge)):
        for name, figure in result.get(section, {}).items():
            title, aim, found, is_reached = judge(name, figure)
            lines.append(f"| {title} | | {aim} | {found} | {verdict(is_reached)} |")
    return "\n".join(lines)


def verdict(is_reached):
    return "reached" if is_reached else "missed"


def threads_of(entry):
    return f"{entry['threads']} thread{'s' if entry['threads'] > 1 else ''}"


def memory_table(entries):
    lines = ["| policy | N | threads | peak memory per sample | state file per sample | plan | save | load |",
             "|---|--:|--:|--:|--:|--:|--:|--:|"]
    for entry in entries:
        save, load = (duration(entry[name]) if name in entry else "" for name in ("save_seconds", "load_seconds"))
        file = f"{entry['file_bytes_per_sample']:.2f} bytes" if "file_bytes_per_sample" in entry else ""
        lines.append(f"| {entry['policy']} | {entry['samples']:.0e} | {entry['threads']} "
                     f"| {entry['bytes_per_sample']:.2f} bytes | {file} | {duration(entry['plan_seconds'])} | {save} | {load} |")
    return "\n".join(lines)


# Parts of a plan in the order in which it makes them.
PART_TITLES = {
    "mean": "mean of the scores", "below": "scores below the mean", "choose": "choosing half of them",
    "order": "order of the 70 % that are kept", "list": "of that, listing their positions",
    "offsets": "of that, random numbers", "histogram": "SeTa's first histogram, half of the samples",
    "groups": "SeTa's 10 groups in all",
}


def parts_table(parts):
    sizes = sorted({int(name.rsplit("/", 1)[1]) for name in parts if name.startswith("part/")})
    lines = ["| part | " + " | ".join(f"N = {n:.0e} | times the copy" for n in sizes) + " |",
             "|---|" + "--:|--:|" * len(sizes)]
    for part, title in PART_TITLES.items():
        cells = []
        for n in sizes:
            seconds = parts[f"part/{part}/{n}"]
            cells += [duration(seconds), f"{seconds / parts[f'part/copy/{n}']:.2f}"]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    alone = {int(name.rsplit("/", 1)[1]): seconds for name, seconds in parts.items() if name.startswith("fisher_yates/")}
    lines += ["", "Fisher-Yates with its random numbers, per item: " +
              ", ".join(f"{1e9 * seconds / n:.2f} ns of {n * 4 / 1024:,.0f} KiB" for n, seconds in sorted(alone.items())) + "."]
    return "\n".join(lines)


def table(result):
    """Markdown: one row per operation and size."""
    measured = result["measured"]
    sizes = sizes_of(result)
    lines = ["| operation | N | time | faster than Python or torch | times the floor |", "|---|--:|--:|--:|--:|"]
    for title, own, peer, floor in ROWS:
        if peer and not any(peer.format(n=n) in measured for n in sizes):
            continue  # a peer that the result did not have yet
        for n in sizes:
            time = measured.get(own.format(n=n))
            if time is None:
                continue
            other = measured.get(peer.format(n=n)) if peer else None
            base = measured.get(floor.format(n=n)) if floor else None
            faster = f"{other['seconds'] / time['seconds']:.3g} x" if other else ""
            over = f"{time['seconds'] / base['seconds']:.2f} x" if base else ""
            lines.append(f"| {title} | {n:.0e} | {duration(time['seconds'])} | {faster} | {over} |")
    lines += ["", "What was aimed at:", "", aims_table(result), ""]
    if result.get("memory"):
        lines += ["A whole run in memory, one measurement each:", "", memory_table(result["memory"]), ""]
    if result.get("parts"):
        lines += ["Where the time of a plan goes:", "", parts_table(result["parts"]), ""]
    if result.get("package"):
        lines += ["", "The Python package on top of the core:", "", overhead.table(result["package"]), ""]
    if result.get("watching"):
        lines += ["", "Watched outputs in a training step:", "", watching.rows(result["watching"]), ""]
    lines.append(provenance(result))
    return "\n".join(lines)
