#!/usr/bin/env python3
"""Compares fusion strategies: kernels, bytes and time of the benchmark workloads, from no fusion over the paper's four
passes to Tokamak's planners.

    bench/fusion_ladder.py                    the micro workloads and CartPole at their first size, on this CPU
    bench/fusion_ladder.py --only 'softmax,adam*' --repetitions 7
    bench/fusion_ladder.py --no-time          kernels and bytes only, of both machines: fusion.json
    bench/fusion_ladder.py --only-time        times only: fusion_times.json

Writes fusion.json, fusion_times.json and the page fusion.md in docs/results. Kernels are launches, library calls, host steps and copies, loops counted once.
Bytes are what kernels and library calls read and write, loops times their iterations. A time is the sum over kernels, each
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
import write_pages
from result_pages import common

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


def counted(workloads, name, tokamak, folder):
    """Kernels and bytes of a workload at its first size, of every rung on both machines."""
    size = workloads.sizes(name)[0]
    path = lower(workloads, name, size, folder)
    targets = {target: {rung: count(tokamak, path, words, target) for rung, words in RUNGS.items()} for target in ("host", "h200")}
    return {"name": name, "size": size, **targets}


def write(folder, counts, times):
    facts = {"command": common.command("bench/fusion_ladder.py"), "date": datetime.date.today().isoformat()}
    if counts:
        what = "Kernels and bytes, first size of each workload"
        common.save(folder, "fusion", {"facts": {**facts, "what": what}, "programs": counts})
    if times:
        what = f"Microseconds on a CPU of {os.cpu_count()} cores, smallest size of each workload"
        common.save(folder, "fusion_times", {"facts": {**facts, "what": what}, "programs": times})
    write_pages.write("fusion", folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokamak", default=str(ROOT / "build/bin/tokamak"))
    parser.add_argument("--workloads", default=str(ROOT / "bench"), help="the folder of workloads.py")
    parser.add_argument("--only", default="*", help="names, with commas between them")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--no-time", action="store_true")
    parser.add_argument("--only-time", action="store_true")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results")
    parser.add_argument("--minutes", type=float, default=30, help="begin no workload after so long")
    parser.add_argument("--each", type=float, default=15, help="seconds of one workload after which no repetition begins")
    options = parser.parse_args()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    sys.path.insert(0, options.workloads)
    import workloads

    names = [name for group in GROUPS for name in workloads.names(group)
             if any(fnmatch.fnmatch(name, pattern) for pattern in options.only.split(","))]
    begin, counts, times = time.monotonic(), [], []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            if time.monotonic() - begin > 60 * options.minutes:
                print(f"{name}: no time left", file=sys.stderr)
                continue
            try:
                if not options.only_time:
                    counts.append(counted(workloads, name, options.tokamak, folder))
                    print(name, {rung: (c or {}).get("kernels") for rung, c in counts[-1]["host"].items()}, flush=True)
                if not options.no_time:
                    size = smallest(workloads, name)
                    took = measure(options.tokamak, lower(workloads, name, size, folder), options.repetitions, options.each)
                    times.append({"name": name, "size": size, "time": took})
                    print(name, {rung: round(t * 1e6) for rung, t in took.items()}, flush=True)
            except Exception as error:  # a workload of another platform
                print(f"{name}: {str(error).splitlines()[0][:100]}", file=sys.stderr)
                continue
            write(options.out, counts, times)


if __name__ == "__main__":
    main()
