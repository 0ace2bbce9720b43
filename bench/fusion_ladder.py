#!/usr/bin/env python3
"""Compares fusion strategies: kernels, bytes and time of the benchmark workloads, from no fusion over the paper's four
passes to Tokamak's planners.

    bench/fusion_ladder.py                    the micro workloads and CartPole at their first size, on this CPU
    bench/fusion_ladder.py --only 'softmax,adam*' --repetitions 7
    bench/fusion_ladder.py --no-time          kernels and bytes only, of both machines, next to the times in fusion.json
    bench/fusion_ladder.py --only-time --only softmax   the times of some, next to the rest of fusion.json

Writes docs/results/fusion.md and fusion.json. Kernels are launches, library calls, host steps and copies, loops counted once.
Bytes are what kernels and library calls read and write, loops times their repetitions. A time is the sum over kernels, each
measured alone (`explain --measure`), the least of several repetitions interleaved with the other rungs, at the smallest size. Run
it on an idle machine."""
import argparse
import datetime
import fnmatch
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import own_python  # noqa: F401

ROOT = Path(__file__).resolve().parent.parent
PASSES = ["instruction-fusion", "fusion-merger", "multi-output-fusion", "horizontal-fusion"]
RUNGS = {"none": ["--fusion=none"]}
for count in range(1, 5):
    skip = PASSES[count:]
    name = "+" + ["instruction", "merger", "multi-output", "horizontal"][count - 1]
    RUNGS[name] = ["--fusion=rules"] + ([f"--skip={','.join(skip)}"] if skip else [])
RUNGS |= {"greedy": ["--fusion=greedy"], "search": ["--fusion=search"]}
GROUPS = ("micro", "cartpole")
SECONDS = 20  # per command


def smallest(workloads, name):
    return min(workloads.sizes(name), key=lambda size: math.prod(map(int, re.findall(r"\d+", size))))


def lower(workloads, name, size, folder):
    """The StableHLO text of a workload."""
    import jax

    work = workloads.workload(name, size)
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
    """Kernels and bytes of one rung; None if it takes too long or fails."""
    report = command(tokamak, ["explain", "--json", "--no-compare", f"--target={target}", *rung, str(path)])
    if report is None or "interpreted" in report:
        return None
    steps = report["kernels"]
    moved = sum((step["reads_bytes"] + step["writes_bytes"]) * (step["calls"] or 1) for step in steps)
    return {"kernels": len(steps), "bytes": moved, "host": report["host_steps"]}


def seconds(tokamak, path, rung):
    """The time of its kernels, each run alone; None if one of them was not measured."""
    report = command(tokamak, ["explain", "--json", "--no-compare", "--measure", "--seconds=0.02", *rung, str(path)])
    steps = [step for step in (report or {}).get("kernels", []) if step["generator"] != "copy"]
    if not steps or any(step["measured_us"] is None for step in steps):
        return None
    return sum(step["measured_us"] * (step["calls"] or 1) for step in steps) / 1e6


def measure(tokamak, path, repetitions, limit):
    """The least time of each rung, rung after rung in every repetition; no repetition begins after `limit` seconds, and a rung that took
    too long or failed is dropped."""
    best, begin, rungs = {}, time.monotonic(), dict(RUNGS)
    for _ in range(repetitions):
        for name, rung in list(rungs.items()):
            took = seconds(tokamak, path, rung)
            if took is None:
                del rungs[name]
            else:
                best[name] = min(took, best.get(name, math.inf))
        if time.monotonic() - begin > limit:
            break
    return best


def mean(values):
    values = [value for value in values if value]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def table(rows, key, text):
    lines = ["| workload | " + " | ".join(RUNGS) + " |", "|---|" + "---:|" * len(RUNGS)]
    for row in rows:
        if not any(row[key].values()):
            continue
        cells = [text(row[key][rung]) if row[key].get(rung) else "-" for rung in RUNGS]
        lines.append(f"| {row['name']} {row['time_size' if key == 'time' else 'size']} | " + " | ".join(cells) + " |")
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


def write(rows, note=""):
    lines = ["# The fusion ladder", "",
             f"Made by `bench/fusion_ladder.py`, {datetime.date.today()}, {os.cpu_count()} cores, first size of each workload (of times: the smallest). "
             "`+instruction` to `+horizontal` are the paper's passes, one more each time ([paper.md](../paper.md)); `greedy` and "
             "`search` are Tokamak's planners. `-`: not measured (rejected, or longer than " f"{SECONDS} s)." + (" " + note if note else ""), ""]
    for title, key, value, text in (
            ("Kernels on this CPU", "host", lambda c: c["kernels"], lambda c: str(c["kernels"])),
            ("Bytes that kernels move on this CPU", "host", lambda c: c["bytes"], lambda c: shown(c["bytes"])),
            ("Microseconds of all kernels on this CPU", "time", lambda c: c, lambda c: f"{c * 1e6:,.0f}"),
            ("Kernels for an H200", "h200", lambda c: c["kernels"], lambda c: str(c["kernels"])),
            ("Bytes that kernels move for an H200", "h200", lambda c: c["bytes"], lambda c: shown(c["bytes"]))):
        if not any(row[key] for row in rows):
            continue
        lines += [f"## {title}", "", *table(rows, key, text), ratios(rows, key, value), ""]
    (ROOT / "docs/results/fusion.md").write_text("\n".join(lines).rstrip() + "\n")
    (ROOT / "docs/results/fusion.json").write_text(json.dumps(rows, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokamak", default=str(ROOT / "build/bin/tokamak"))
    parser.add_argument("--workloads", default=str(ROOT / "bench"), help="the folder of workloads.py")
    parser.add_argument("--only", default="*", help="names, with commas between them")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--no-time", action="store_true")
    parser.add_argument("--only-time", action="store_true")
    parser.add_argument("--note", default="", help="what else the page says of how it was made")
    parser.add_argument("--minutes", type=float, default=30, help="begin no workload after so long")
    parser.add_argument("--each", type=float, default=15, help="seconds of one workload after which no round of times begins")
    options = parser.parse_args()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    sys.path.insert(0, options.workloads)
    import workloads

    names = [name for group in GROUPS for name in workloads.names(group)
             if any(fnmatch.fnmatch(name, pattern) for pattern in options.only.split(","))]
    begin = datetime.datetime.now()
    known = ROOT / "docs/results/fusion.json"
    rows = json.loads(known.read_text()) if known.is_file() and (options.only_time or options.no_time) else []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            if (datetime.datetime.now() - begin).total_seconds() > 60 * options.minutes:
                print(f"{name}: no time left", file=sys.stderr)
                continue
            try:
                size, quick = workloads.sizes(name)[0], smallest(workloads, name)
                row = next((row for row in rows if row["name"] == name), None)
                if row is None:
                    row = {"name": name, "size": size, "time": {}, "time_size": quick}
                    rows.append(row)
                if "host" not in row or not options.only_time:
                    path = lower(workloads, name, size, folder)
                    row["size"] = size
                    for target in ("host", "h200"):
                        row[target] = {rung: count(options.tokamak, path, words, target) for rung, words in RUNGS.items()}
                if not options.no_time:
                    row["time"] = measure(options.tokamak, lower(workloads, name, quick, folder), options.repetitions, options.each)
                    row["time_size"] = quick
            except Exception as error:  # a workload of another platform
                print(f"{name}: {str(error).splitlines()[0][:100]}", file=sys.stderr)
                continue
            print(name, {rung: (c or {}).get("kernels") for rung, c in row["host"].items()},
                  {rung: round(t * 1e6) for rung, t in row["time"].items()}, flush=True)
            write(rows, options.note)


if __name__ == "__main__":
    main()
