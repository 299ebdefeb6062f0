"""What the scripts that render documentation share."""

import json
import re
import sys


def with_part(text, name, content):
    """The text with `content` between `<!-- begin NAME -->` and `<!-- end NAME -->`."""
    pattern = re.compile(f"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    if not pattern.search(text):
        sys.exit(f"no part named {name}")
    return pattern.sub(lambda match: f"{match[1]}{content}\n{match[2]}", text)


def table(header, rows, numbers=False):
    """A table; with `numbers` all columns but the first are aligned to the right."""
    rule = "|---|" + ("--:|" if numbers else "---|") * (len(header) - 1)
    return "\n".join(["| " + " | ".join(header) + " |", rule] + ["| " + " | ".join(row) + " |" for row in rows])


def saved(row, digits):
    """The share of the time that a method saved, marked if pruning alone cannot have saved it."""
    if row["time_saved"] is None:
        return "-"
    return f"{100 * row['time_saved']:.{digits}f} %{'*' if row.get('more_saved_than_pruned') else ''}"


def saved_note(rows, baseline):
    """What the mark of `saved` means, to follow the table; empty if no row has it."""
    if not any(row.get("more_saved_than_pruned") for row in rows):
        return ""
    return f"\n\n`*`: more than was pruned, which pruning cannot save: something else slowed {baseline} down."


def points(difference):
    """A difference of shares in points, with its interval."""
    mean, low, high = (100 * difference[key] for key in ("mean", "low", "high"))
    return f"{mean:+.2f} [{low:+.2f}, {high:+.2f}]"


def keep(path, result):
    """Writes a result file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written: {path}")


def publish(pages, check):
    """Writes the pages ({path: text}) that differ from their files. With `check` it only names them and exits with 1."""
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(pages[path])
        print(f"{'not up to date' if check else 'written'}: {path}")
    if check and stale:
        sys.exit(1)
