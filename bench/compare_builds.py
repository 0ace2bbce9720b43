#!/usr/bin/env python3
"""Compares two builds of Tokamak on the CPU: run time, compile time and launches of the workloads and of the loops.

    bench/compare_builds.py BASE                    BASE: another checkout, built in its folder build
    bench/compare_builds.py BASE --new BASE         a build with itself: what the machine's noise makes of it
    bench/compare_builds.py BASE --only 'softmax:*,loop:kalman'
    taskset -c 2,3 bench/compare_builds.py BASE --share 1/8 --json share1.json     every eighth program, beside other shares
    bench/compare_builds.py BASE --join share*.json                                the figures of all shares

Figures are new / base: below 1 is faster. Each build runs a program in its own process; the two call it in turn, a batch of
calls each, and compile it in turn. A process pair's figure is the ratio of the best batches; a row's is the median over the pairs. Two
processes of one build differ (pages, alignment), so a row that is off by more than a tenth, either way, is measured with more pairs.
Exits 1 if a mean is above 1.03 or a row above 1.10. --json FILE keeps the rows.
"""
import argparse
import collections
import fnmatch
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import cpu_sizes
import workload
from result_pages.common import mean

PAIRS, MORE_PAIRS, OFF = 2, 7, 1.1
BATCH_S, BATCHES, COMPILES, LIMIT_S = 0.02, 9, 3, 1.0
MEAN_BAR, ROW_BAR = 1.03, 1.10
LOOP = "loop"  # a program of loop_programs.py is named loop:NAME
Program = collections.namedtuple("Program", "fn args carry")


# ---- in a process of one build


def load(arguments, which):
    import jax

    name, size = which.split(":")
    if name != LOOP:
        return workload.load(arguments, which)
    import loop_programs

    with jax.default_device(jax.devices("cpu")[0]):
        fn, given = loop_programs.PROGRAMS[size]()
    return Program(fn, given, 0)


def serve(arguments):
    """Obeys the lines of stdin: `compile N` and `call N` answer with JSON."""
    import jax
    import numpy as np
    from run_cpu import Side

    events = []
    hold = workload.listen(events)
    work = load(arguments, arguments.worker)
    host = jax.tree.map(np.asarray, tuple(work.args))
    side = Side("tokamak", work, [host])
    for line in sys.stdin:
        what, number = line.split()
        if what == "compile":
            events.clear()
            answer = {"seconds": side.compile(int(number))}
            answer["launches"] = [e for e in events if e["event"] == "compile"][-1]["launches"]
        else:
            answer = {"seconds": side.call(int(number))[0] / int(number)}
        print(json.dumps(answer), flush=True)
    del hold


# ---- all programs


class Worker:
    """A process of one build that has one program."""

    def __init__(self, arguments, checkout, which):
        environment = {**os.environ, "JAX_PLATFORMS": "tokamak,cpu", "TOKAMAK_DEVICE": "cpu", "TOKAMAK_CACHE": "off",
                       "PYTHONPATH": str(checkout / "python")}  # fmt: skip
        command = [sys.executable, __file__, str(checkout), "--worker", which, "--workloads", str(arguments.workloads)]
        self.process = subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def ask(self, what, number):
        self.process.stdin.write(f"{what} {number}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{what} failed")
        return json.loads(line)

    def close(self):
        self.process.kill()
        self.process.wait()


def alternate(pair, what, number, repetitions):
    """The best of each side's repetitions; the first one of a repetition changes."""
    best = [float("inf")] * 2
    for repetition in range(repetitions):
        for i in (0, 1) if repetition % 2 else (1, 0):
            best[i] = min(best[i], pair[i].ask(what, number + repetition if what == "compile" else number)["seconds"])
    return best


def compare_once(arguments, which):
    """One pair of processes: seconds of each side, or why there are none."""
    pair = [Worker(arguments, checkout, which) for checkout in (arguments.base, arguments.new)]
    try:
        compiled = [side.ask("compile", 0) for side in pair]
        once = [min(side.ask("call", 1)["seconds"] for _ in range(2)) for side in pair]
        if min(once) > LIMIT_S:
            return {"skipped": f"{min(once):.1f} s a call"}
        calls = max(1, min(400, int(BATCH_S / max(max(once), 1e-6))))
        run = alternate(pair, "call", calls, BATCHES)
        return {"launches": [c["launches"] for c in compiled], "run": run, "compile": alternate(pair, "compile", 1, COMPILES)}
    except RuntimeError as error:
        return {"error": str(error)}
    finally:
        for side in pair:
            side.close()


def ratio(pairs, part):
    return statistics.median(pair[part][1] / pair[part][0] for pair in pairs)


def compare(arguments, which):
    pairs = []
    while len(pairs) < PAIRS or len(pairs) < MORE_PAIRS and any(max(r, 1 / r) > OFF for r in (ratio(pairs, "run"), ratio(pairs, "compile"))):
        pairs.append(compare_once(arguments, which))
        if "run" not in pairs[-1]:
            return {"program": which, **pairs[-1]}
    return {"program": which, "pairs": pairs, "launches": pairs[0]["launches"], **{part: ratio(pairs, part) for part in ("run", "compile")}}


def names(arguments):
    """The workloads of bench/run_cpu.py at their first size and a small one, and all loops."""
    import loop_programs

    made = [f"{name}:{size}" for name, size in workload.selected(arguments, lambda n, sizes: sizes[:1] + cpu_sizes.SIZES.get(n, [])[:1])]
    return list(dict.fromkeys(made)) + [
        name for name in (f"{LOOP}:{n}" for n in loop_programs.PROGRAMS) if not arguments.only or any(fnmatch.fnmatch(name, p) for p in arguments.only.split(","))
    ]


def said(row):
    if "run" not in row:
        return row.get("error") or row["skipped"]
    return f"run {row['run']:.3f}, compile {row['compile']:.3f}, launches {row['launches'][0]} -> {row['launches'][1]} ({len(row['pairs'])} pairs)"


def summary(rows):
    """What is compared with the bars: (text, whether it is met)."""
    done = [row for row in rows if "run" in row]
    for part in ("run", "compile"):
        value = mean([row[part] for row in done])
        yield f"{part}: mean {value:.3f} of {len(done)} programs", value <= MEAN_BAR
        for row in sorted(done, key=lambda row: -row[part]):
            if row[part] > ROW_BAR:
                yield f"{part}: {row['program']} {row[part]:.3f}", False
    launches = [sum(row["launches"][i] for row in done) for i in (0, 1)]
    more = [row["program"] for row in done if row["launches"][1] > row["launches"][0]]
    yield f"launches: {launches[0]} -> {launches[1]}" + (f", more in {', '.join(more)}" if more else ""), launches[1] <= launches[0] * MEAN_BAR
    for row in rows:
        if "error" in row:
            yield f"{row['program']}: {row['error']}", False


def report(rows):
    results = list(summary(rows))
    for text, met in results:
        print(f"{'' if met else 'NOT MET: '}{text}")
    return 0 if all(met for _, met in results) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path, help="the checkout to compare with")
    parser.add_argument("--new", type=Path, default=workload.ROOT, help="the checkout that is compared (this one)")
    parser.add_argument("--only", default="", help="NAME[:SIZE] or loop:NAME, with * and ?; commas between them")
    parser.add_argument("--quick", action="store_true", help="one size of each workload")
    parser.add_argument("--workloads", type=Path, default=workload.ROOT / "bench/workloads.py")
    parser.add_argument("--json", type=Path, help="keep the rows in this file")
    parser.add_argument("--share", default="0/1", help="I/N: the programs I, I + N ... of the list")
    parser.add_argument("--join", type=Path, nargs="+", help="files of --json: no measurement, only the summary of their rows")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return serve(arguments)
    if arguments.join:
        return report([row for file in arguments.join for row in json.loads(file.read_text())["programs"]])
    for checkout in (arguments.base, arguments.new):
        if not (checkout / "build/lib/libtokamak.so").exists():
            sys.exit(f"{checkout}/build/lib/libtokamak.so is not there: build that checkout first")
    rows, begin = [], time.monotonic()
    first, shares = (int(number) for number in arguments.share.split("/"))
    for which in names(arguments)[first::shares]:
        rows.append(compare(arguments, which))
        print(f"{which}: {said(rows[-1])}", flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps({"facts": workload.facts_of(__file__), "programs": rows}, indent=1) + "\n")
    print(f"\nnew / base, {time.monotonic() - begin:.0f} s")
    return report(rows)


if __name__ == "__main__":
    sys.exit(main())
