#!/usr/bin/env python3
"""Measures planning: milliseconds of the greedy plan (tier 0) and of the search, and the estimated cost of the plans.

    cmake --build build --target plan_times && bench/plan_times.py --folder build/bench_programs
    bench/plan_times.py --folder DIR --only bert --repetitions 3

Writes planning.json and the page planning.md in docs/results. Programs: *.mlir of the folder (bench/run_passes.py --folder makes
them from workloads.py), and those of bench/make_large.py. A time is the CPU time of the thread in a separate process,
bound to one core; the best of several repetitions counts. Nothing else should run: caches are shared.
"""
import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import write_pages
from result_pages import common

ROOT = Path(__file__).resolve().parent.parent
LARGE = ("chain", "ladder", "parameters", "concatenate", "mixed")
COUNTS = (1_000, 10_000, 100_000)


def plan(arguments, mode, path):
    # The default passes re-roll unrolled loops; without them large programs stay large.
    passes = "default" if path.suffix == ".mlir" else "dce"
    try:
        done = subprocess.run([arguments.plan_times, mode, arguments.target, passes, str(path)], capture_output=True, text=True,
                              timeout=arguments.timeout, check=False,
                              preexec_fn=lambda: os.sched_setaffinity(0, {arguments.core}))  # fmt: skip
    except subprocess.TimeoutExpired:
        return {}
    if done.returncode != 0 or not done.stdout:
        sys.exit(f"plan_times {mode} {path}: {done.stderr.strip()[:500]}")
    return json.loads(done.stdout.splitlines()[0])


def collect(arguments, folder):
    programs = [(path.stem, path) for path in sorted(arguments.folder.glob("*.mlir")) if arguments.only in path.stem]
    for kind in LARGE:
        for count in COUNTS:
            path = folder / f"{kind}_{count}.hlo"
            with path.open("w") as out:
                subprocess.run([sys.executable, str(ROOT / "bench/make_large.py"), kind, str(count)], stdout=out, check=True)
            if arguments.only in path.stem:
                programs.append((f"{kind} {count}", path))
    return programs


def measure(arguments, programs):
    results = {name: {} for name, _ in programs}
    for _ in range(arguments.repetitions):
        for name, path in programs:
            for mode in ("greedy", "search"):
                row = plan(arguments, mode, path)
                if "us" not in row:
                    continue
                row["plan_ms"] = row["first_ms"] + row["greedy_ms"] + row["search_ms"] + row["schedule_ms"]
                kept = results[name].setdefault(mode, row)
                kept.setdefault("all_ms", []).append(round(row["plan_ms"], 3))
                if row["plan_ms"] < kept["plan_ms"]:
                    results[name][mode] = {**row, "all_ms": kept["all_ms"]}
    return results


def cpu_name():
    names = [line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return names[0] if names else platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--plan-times", default=str(ROOT / "build/bin/plan_times"))
    parser.add_argument("--target", default="host", choices=("host", "unknown", "h200"))
    parser.add_argument("--only", default="")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=60, help="seconds of one plan")
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = measure(arguments, collect(arguments, Path(folder)))
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    facts = {"command": common.command("bench/plan_times.py"), "date": datetime.date.today().isoformat(), "commit": commit.stdout.strip(),
             "cpu": cpu_name(), "cores": os.cpu_count(), "load": os.getloadavg()[0], "target": arguments.target}  # fmt: skip
    common.save(arguments.out, "planning", {"facts": facts, "programs": results})
    print(write_pages.write("planning", arguments.out))


if __name__ == "__main__":
    main()
