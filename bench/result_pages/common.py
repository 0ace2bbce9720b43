"""Shared by the pages of docs/results: their data files, and what they say of a run."""
import json
import math
import sys
from pathlib import Path

DIGITS = 9  # significant ones of a measured number in a data file


def mean(values):
    """The geometric mean."""
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 0


def command(script):
    """The command of this run, for its page: without the folder that it writes to."""
    words = sys.argv[1:]
    if "--out" in words:
        at = words.index("--out")
        del words[at : at + 2]
    return " ".join([script, *words])


def facts_line(facts):
    """How, where and when a run was measured."""
    said = [f"`{facts['command']}`", facts["date"]]
    said += [f"commit {facts['commit']}"] if facts.get("commit") else []
    said += [f"JAX {facts['jax']}"] if facts.get("jax") else []
    said += [f"driver {facts['driver']}"] if facts.get("driver") else []
    said += [facts["system"]] if facts.get("system") else []
    said += [f"{facts['memory']} GiB of memory"] if facts.get("memory") else []
    said += [f"load {facts['load']:.1f}"] if "load" in facts else []
    return ", ".join(said) + "."


def machine(facts):
    """The heading of a run."""
    if facts.get("device"):
        return facts["device"]
    cores = facts["cores"]
    return f"{facts['cpu']}, {cores} cores" if isinstance(cores, int) else f"{facts['cpu']}, cores {cores}"


def table(head, rows, right=0):
    """Lines of a table; its last `right` columns are aligned to the right."""
    columns = head.split(" | ")
    yield f"| {head} |"
    yield "|" + "---|" * (len(columns) - right) + "---:|" * right
    for row in rows:
        yield "| " + " | ".join(str(cell) for cell in row) + " |"


def yes(met):
    return "yes" if met else "no"


def shortened(value):
    """The value with DIGITS significant digits in its floats."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: shortened(of) for key, of in value.items()}
    return [shortened(of) for of in value] if isinstance(value, list) else value


def text_of(data):
    """The text of a data file: a line per row."""
    parts = []
    for key, value in shortened(data).items():
        compact = lambda of: json.dumps(of, separators=(",", ":"))  # noqa: E731
        if isinstance(value, list) and value:
            body = "[\n" + ",\n".join(map(compact, value)) + "\n]"
        elif isinstance(value, dict) and key != "facts" and value:
            body = "{\n" + ",\n".join(f"{json.dumps(name)}: {compact(of)}" for name, of in value.items()) + "\n}"
        else:
            body = json.dumps(value)
        parts.append(f"{json.dumps(key)}: {body}")
    return "{" + ",\n".join(parts) + "}\n"


def save(folder, name, data):
    """Writes NAME.json."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(text_of(data))
