#!/usr/bin/env python3
"""How far each way of fusing goes: kernels, bytes and time of the benchmark workloads, from no fusion over the paper's four
passes to Tokamak's planners.

    bench/fusion_ladder.py                    the micro workloads and CartPole at their first size, on this CPU
    bench/fusion_ladder.py --only 'softmax,adam*' --rounds 7
    bench/fusion_ladder.py --no-time          kernels and bytes only, of both machines

Writes docs/results/fusion.md and fusion.json. Kernels are launches, library calls, host steps and copies, loops counted once.
Bytes are what kernels and library calls read and write, loops times their rounds. A time is the least of the medians of
several runs, in turn with the other rungs; run it on a machine that has nothing else to do, or read only the ratios."""
import argparse
import datetime
import fnmatch
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PASSES = ["instruction-fusion", "fusion-merger", "multi-output-fusion", "horizontal-fusion"]
RUNGS = {"none": ["--fusion=none"]}
for count in range(1, 5):
    skip = PASSES[count:]
    name = "+" + ["instruction", "merger", "multi-output", "horizontal"][count - 1]
    RUNGS[name] = ["--fusion=rules"] + ([f"--skip={','.join(skip)}"] if skip else [])
RUNGS |= {"greedy": ["--fusion=greedy"], "search": ["--fusion=search"]}
GROUPS = ("micro", "cartpole")
SECONDS = 60  # of one command


def lower(workloads, name, folder):
    """The StableHLO text of a workload at its first size."""
    import jax

    work = workloads.workload(name, workloads.sizes(name)[0])
    path = Path(folder) / f"{name}.mlir"
    path.write_text(jax.jit(work.fn).lower(*work.args).as_text())
    return path


def command(tokamak, words):
    try:
        done = subprocess.run([tokamak, *words], capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout.splitlines()[0]) if done.returncode == 0 and done.stdout else None


def count(tokamak, path, rung, target):
    """Kernels and bytes of one rung; None when it takes too long or fails."""
    told = command(tokamak, ["explain", "--json", f"--target={target}", *rung, str(path)])
    if told is None or "interpreted" in told:
        return None
    steps = told["kernels"]
    moved = sum((step["reads_bytes"] + step["writes_bytes"]) * (step["calls"] or 1) for step in steps)
    return {"kernels": len(steps), "bytes": moved, "host": told["host_steps"]}


def seconds(tokamak, path, rung, repeat):
    told = command(tokamak, ["run", "--json", "--backend=cpu", "--seed=1", f"--repeat={repeat}", *rung, str(path)])
    return None if told is None else told["programs"][0].get("seconds")


def measure(tokamak, path, rounds):
    """The least median of each rung, rung after rung in every round."""
    best = {}
    first = seconds(tokamak, path, RUNGS["search"], 3)
    if first is None:
        return best
    repeat = max(3, min(200, int(0.2 / max(first, 1e-6))))
    for _ in range(rounds):
        for name, rung in RUNGS.items():
            took = seconds(tokamak, path, rung, repeat)
            if took is not None:
                best[name] = min(took, best.get(name, math.inf))
    return best


def mean(values):
    values = [value for value in values if value]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def table(rows, key, text):
    lines = ["| workload | " + " | ".join(RUNGS) + " |", "|---|" + "---:|" * len(RUNGS)]
    for row in rows:
        cells = [text(row[key][rung]) if row[key].get(rung) else "-" for rung in RUNGS]
        lines.append(f"| {row['name']} {row['size']} | " + " | ".join(cells) + " |")
    return lines


def shown(number):
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= scale:
            return f"{number / scale:.3g}{unit}"
    return str(number)


def ratios(rows, key, value):
    """Geometric means of `none` over each rung, over workloads that have all rungs."""
    full = [row for row in rows if all(row[key].get(rung) for rung in RUNGS)]
    cells = [f"{mean([value(row[key]['none']) / max(value(row[key][rung]), 1e-12) for row in full]):.2f}" for rung in RUNGS]
    return f"| **geometric mean of none / rung ({len(full)})** | " + " | ".join(cells) + " |"


def write(rows, options):
    lines = ["# The fusion ladder", "",
             f"Made by `bench/fusion_ladder.py`, {datetime.date.today()}, {os.cpu_count()} cores, first size of each workload. "
             "`+instruction` to `+horizontal` are the paper's passes, one more each time ([paper.md](../paper.md)); `greedy` and "
             "`search` are Tokamak's planners. `-`: not measured (refused, or longer than a minute).", ""]
    for title, key, value, text in (
            ("Kernels on this CPU", "host", lambda c: c["kernels"], lambda c: str(c["kernels"])),
            ("Bytes that kernels move on this CPU", "host", lambda c: c["bytes"], lambda c: shown(c["bytes"])),
            ("Microseconds a call on this CPU", "time", lambda c: c, lambda c: f"{c * 1e6:,.0f}"),
            ("Kernels for an H200", "h200", lambda c: c["kernels"], lambda c: str(c["kernels"])),
            ("Bytes that kernels move for an H200", "h200", lambda c: c["bytes"], lambda c: shown(c["bytes"]))):
        if key == "time" and options.no_time:
            continue
        lines += [f"## {title}", "", *table(rows, key, text), ratios(rows, key, value), ""]
    (ROOT / "docs/results/fusion.md").write_text("\n".join(lines).rstrip() + "\n")
    (ROOT / "docs/results/fusion.json").write_text(json.dumps(rows, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokamak", default=str(ROOT / "build/bin/tokamak"))
    parser.add_argument("--workloads", default=str(ROOT / "../shared/bench"), help="the folder of workloads.py")
    parser.add_argument("--only", default="*", help="names, with commas between them")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-time", action="store_true")
    parser.add_argument("--minutes", type=float, default=30, help="begin no workload after so long")
    options = parser.parse_args()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    sys.path.insert(0, options.workloads)
    import workloads

    names = [name for group in GROUPS for name in workloads.names(group)
             if any(fnmatch.fnmatch(name, pattern) for pattern in options.only.split(","))]
    begin = datetime.datetime.now()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            if (datetime.datetime.now() - begin).total_seconds() > 60 * options.minutes:
                print(f"{name}: no time left", file=sys.stderr)
                continue
            try:
                path = lower(workloads, name, folder)
            except Exception as fault:  # a workload of another platform
                print(f"{name}: {str(fault).splitlines()[0][:100]}", file=sys.stderr)
                continue
            row = {"name": name, "size": workloads.sizes(name)[0]}
            for target in ("host", "h200"):
                row[target] = {rung: count(options.tokamak, path, words, target) for rung, words in RUNGS.items()}
            row["time"] = {} if options.no_time else measure(options.tokamak, path, options.rounds)
            rows.append(row)
            print(name, {rung: (c or {}).get("kernels") for rung, c in row["host"].items()},
                  {rung: round(t * 1e6) for rung, t in row["time"].items()}, flush=True)
            write(rows, options)


if __name__ == "__main__":
    main()
