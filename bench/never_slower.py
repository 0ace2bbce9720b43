#!/usr/bin/env python3
"""Measures plans against each other: no workload may be slower by the plan that is searched for than unfused, or greedily fused.

    bench/never_slower.py                 three sizes of each micro workload
    bench/never_slower.py --quick         one size of each
    bench/never_slower.py --only 'softmax:*,adam:small200'

Writes docs/results/never_slower.md and .json (--name: another name). A process a workload compiles the program by each way of
tokamak_fusion, the searched plan twice (what those two differ by is the spread), and calls them in turn, at least 15 rounds. A figure is
the median over rounds of the ratio to the searched plan in the same round. Run it on a machine that has nothing else to do.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import run_cpu

ROOT = Path(__file__).resolve().parent.parent
MODES = {"none": "none", "greedy": "greedy", "search": "search", "again": "search"}
ROUNDS, ROUND_S, LIMIT_S = 15, 0.01, 1.0
SLOWER_BAR, MEAN_BAR = 1.03, 1.5


def measure(arguments):
    """One workload: seconds a call of each way, round by round."""
    import jax
    import numpy as np

    sys.path.insert(0, str(arguments.workloads.parent))
    import workloads

    work = workloads.workload(*arguments.worker.split(":"))
    for flag, value in work.config.items():
        if hasattr(jax.config, flag):
            jax.config.update(flag, value)
    given = jax.tree.map(lambda a: jax.device_put(np.asarray(a), jax.devices("tokamak")[0]), tuple(work.args))
    events, programs, launches = [], {}, {}
    hold = run_cpu.listen(events)
    for name, mode in MODES.items():
        function = lambda *a: work.fn(*a)  # noqa: E731
        function.__name__ = f"workload_{name}"
        events.clear()
        programs[name] = jax.jit(function).lower(*given).compile(compiler_options={"tokamak_fusion": mode})
        launches[name] = [e for e in events if e["event"] == "compile"][-1]["launches"]
    once = {}
    for name, program in programs.items():
        jax.block_until_ready(program(*given))
        begin = time.perf_counter()
        jax.block_until_ready(program(*given))
        once[name] = time.perf_counter() - begin
        if once[name] > LIMIT_S and name != "none":
            return {"skipped": f"{once[name]:.1f} s a call"}
    calls = {name: max(1, min(400, int(ROUND_S / max(s, 1e-6)))) for name, s in once.items()}
    seconds = {name: [] for name in MODES}
    for _ in range(ROUNDS):
        for name, program in programs.items():
            begin = time.perf_counter()
            for _ in range(calls[name]):
                out = program(*given)
            jax.block_until_ready(out)
            seconds[name].append((time.perf_counter() - begin) / calls[name])
    del hold
    return {"seconds": seconds, "launches": launches}


def child(arguments, name, size):
    environment = {**os.environ, "JAX_PLATFORMS": "tokamak,cpu", "TOKAMAK_DEVICE": "cpu", "TOKAMAK_CACHE": "off",
                   "PYTHONPATH": f"{ROOT / 'python'}:{os.environ.get('PYTHONPATH', '')}"}  # fmt: skip
    command = [sys.executable, str(Path(__file__).resolve()), "--worker", f"{name}:{size}", "--workloads", str(arguments.workloads)]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return {"error": "not done after 300 s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        return {"error": (done.stderr.strip().splitlines() or ["no output"])[-1][:300]}
    return json.loads(lines[-1])


def over_plan(row, name):
    """How many times the searched plan's time another takes: the median over rounds."""
    return statistics.median(other / own for other, own in zip(row["seconds"][name], row["seconds"]["search"], strict=True))


def spread(row):
    """What two runs of one plan differ by: half of the rounds lie within."""
    logs = sorted(abs(math.log(a / b)) for a, b in zip(row["seconds"]["again"], row["seconds"]["search"], strict=True))
    return math.exp(logs[len(logs) // 2])


def is_slower(row):
    return 1 / min(over_plan(row, "none"), over_plan(row, "greedy")) > SLOWER_BAR * spread(row)


def page(facts, rows):
    done = [row for row in rows if "seconds" in row]
    slow = [f"{row['workload']} {row['size']}" for row in done if is_slower(row)]
    gain = run_cpu.mean(over_plan(row, "none") for row in done)
    lines = [f"`{facts['command']}` measured this.", "", "# Plans against each other on the CPU", "",
             f"{facts['cpu']}, {facts['cores']} cores; {facts['system']}; JAX {facts['jax']}; commit {facts['commit']}; {facts['date']}; "
             f"load {facts['load']:.1f}; {ROUNDS} rounds in turn.", "",
             "| what | bar | met |", "|---|---|---|",
             f"| searched plans slower than the better of unfused and greedy: {', '.join(slow) or 'none'} | none beyond {SLOWER_BAR} x the spread | {'no' if slow else 'yes'} |",
             f"| unfused over searched, geometric mean of {len(done)}: {gain:.2f} | >= {MEAN_BAR} | {'yes' if gain >= MEAN_BAR else 'no'} |", "",
             "Milliseconds a call, best round; then times of the others over the searched plan's, medians over rounds; launches of each.", "",
             "| program | search | none | greedy | spread | launches: none, greedy, search |", "|---|---|---|---|---|---|"]  # fmt: skip
    for row in sorted(done, key=lambda row: min(over_plan(row, "none"), over_plan(row, "greedy"))):
        launches = ", ".join(str(row["launches"][mode]) for mode in ("none", "greedy", "search"))
        lines.append(f"| {row['workload']} {row['size']} | {min(row['seconds']['search']) * 1e3:.3f} | {over_plan(row, 'none'):.2f} "
                     f"| {over_plan(row, 'greedy'):.2f} | {spread(row):.2f} | {launches} |")  # fmt: skip
    for row in rows:
        if "seconds" not in row:
            lines.append(f"| {row['workload']} {row['size']} | {row.get('error') or row.get('skipped')} | | | | |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", type=Path, default=ROOT / "../shared/bench/workloads.py")
    parser.add_argument("--only", default="", help="NAME[:SIZE], with * and ?; commas between them")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no workload after this time")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results")
    parser.add_argument("--name", default="never_slower")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.workloads.is_file():
        sys.exit("the workloads are not there: --workloads says where workloads.py is")
    if arguments.worker:
        print(json.dumps(measure(arguments)))
        sys.stdout.flush()
        return 0
    facts, rows = run_cpu.facts_of(arguments), []
    facts["command"] = " ".join(["bench/never_slower.py", *sys.argv[1:]])
    arguments.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + arguments.seconds
    for name, size in run_cpu.selected(arguments):
        if time.monotonic() > end:
            rows.append({"workload": name, "size": size, "skipped": "not begun in time"})
            continue
        rows.append(row := {"workload": name, "size": size} | child(arguments, name, size))
        said = f"none {over_plan(row, 'none'):.2f}, greedy {over_plan(row, 'greedy'):.2f}" if "seconds" in row else row.get("error") or row["skipped"]
        print(f"{name} {size}: {said}", file=sys.stderr, flush=True)
    (arguments.out / f"{arguments.name}.json").write_text(json.dumps({**facts, "programs": rows}, indent=1) + "\n")
    (arguments.out / f"{arguments.name}.md").write_text(text := page(facts, rows))
    print(text)
    return 1 if any("seconds" in row and is_slower(row) for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
