#!/usr/bin/env python3
"""Measures plans against each other: no workload may be slower by the plan that is searched for than unfused, or greedily fused.

    bench/never_slower.py                 three sizes of each micro workload: its first, and two smaller ones
    bench/never_slower.py --quick         one size of each
    bench/never_slower.py --only 'softmax:*,adam:small200'
    bench/never_slower.py --add --seconds 170     goes on where an earlier run ended: slices make up one page
    bench/never_slower.py --device cuda   on the GPU, the middle one of each workload's sizes: never_slower_cuda.md

Writes docs/results/never_slower.md and .json (--name: another name). A process a workload compiles the program by each way of
tokamak_fusion, the searched plan twice (what those two differ by is the spread), and calls them in turn, at least 15 rounds. A figure is
the median over rounds of the ratio to the searched plan in the same round. Run it on a machine that has nothing else to do.
"""
import contextlib
import math
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import cpu_sizes
import workload

MODES = {"none": "none", "greedy": "greedy", "search": "search", "again": "search"}
SIZES, ROUNDS, ROUND_S, LIMIT_S = 3, 15, 0.01, 1.0
FAR, FAR_ROUNDS = 2, 3  # what takes so many times as long is no rival: it runs in the first rounds only
SLOWER_BAR, MEAN_BAR = 1.03, 1.5
KEPT = []  # what the library may call
# Of workloads that cpu_sizes.py has no kernels of.
MORE = {"sort": ["4096", "65536"], "attn_causal_do_bwd": ["b1_s128", "b1_s512"], "attn_sdpa_bwd": ["b1_s128", "b1_s512"],
        "heat3d_loop10": ["32", "128"]}  # fmt: skip


def sizes_of(name, sizes):
    """The first that the workload names and two smaller ones, else more of its own."""
    return list(dict.fromkeys(sizes[:1] + (cpu_sizes.SIZES | MORE).get(name, [])[:2] + sizes[1:]))[:SIZES]


def measure(arguments):
    """One workload: seconds a call of each way, round by round."""
    import jax
    import numpy as np

    with jax.default_device(jax.devices("cpu")[0]) if arguments.device else contextlib.nullcontext():
        work = workload.load(arguments, arguments.worker)
    given = jax.tree.map(lambda a: jax.device_put(np.asarray(a), jax.devices("tokamak")[0]), tuple(work.args))
    events, programs, launches, prepare_us = [], {}, {}, {}
    hold = workload.listen(events)
    for name, mode in MODES.items():
        function = lambda *a: work.fn(*a)  # noqa: E731
        function.__name__ = f"workload_{name}"
        events.clear()
        programs[name] = jax.jit(function).lower(*given).compile(compiler_options={"tokamak_fusion": mode})
        compiled = [e for e in events if e["event"] == "compile"][-1]
        launches[name], prepare_us[name] = compiled["launches"], compiled["prepare_us"]
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
    for turn in range(ROUNDS):
        for name, program in programs.items():
            if turn >= FAR_ROUNDS and name in ("none", "greedy") and min(seconds[name]) > FAR * max(seconds["search"]):
                continue
            begin = time.perf_counter()
            for _ in range(calls[name]):
                out = program(*given)
            jax.block_until_ready(out)
            seconds[name].append((time.perf_counter() - begin) / calls[name])
    KEPT.append(hold)
    return {"seconds": seconds, "launches": launches, "prepare_us": prepare_us}


def over_plan(row, name):
    """How many times the searched plan's time another takes: the median over rounds."""
    return statistics.median(other / own for other, own in zip(row["seconds"][name], row["seconds"]["search"]))  # noqa: B905


def spread(row):
    """What two runs of one plan differ by: half of the rounds lie within."""
    logs = sorted(abs(math.log(a / b)) for a, b in zip(row["seconds"]["again"], row["seconds"]["search"], strict=True))
    return math.exp(logs[len(logs) // 2])


def break_even(row, name):
    """After how many calls the time that the search took longer to compile than another way is won back."""
    more_us = row["prepare_us"]["search"] - row["prepare_us"][name]
    saves_us = (statistics.median(row["seconds"][name]) - statistics.median(row["seconds"]["search"])) * 1e6
    return "at once" if more_us <= 0 else "never" if saves_us <= 0 else f"{math.ceil(more_us / saves_us)}"


def is_slower(row):
    return 1 / min(over_plan(row, "none"), over_plan(row, "greedy")) > SLOWER_BAR * spread(row)


def page(facts, rows):
    done = [row for row in rows if "seconds" in row]
    slow = [f"{row['workload']} {row['size']}" for row in done if is_slower(row)]
    gain = workload.mean(over_plan(row, "none") for row in done)
    lines = [f"`{facts['command']}` measured this.", "", f"# Plans against each other on the {'GPU' if facts.get('device') else 'CPU'}", "",
             f"{facts.get('device') or facts['cpu']}, {facts['cores']} cores; {facts['system']}; JAX {facts['jax']}; commit {facts['commit']}; {facts['date']}; "
             f"load {facts['load']:.1f}; {ROUNDS} rounds in turn, {FAR_ROUNDS} of a way that takes {FAR} times as long.", "",
             "| what | bar | met |", "|---|---|---|",
             f"| searched plans slower than the better of unfused and greedy: {', '.join(slow) or 'none'} | none beyond {SLOWER_BAR} x the spread | {'no' if slow else 'yes'} |",
             f"| unfused over searched, geometric mean of {len(done)}: {gain:.2f} | >= {MEAN_BAR} | {'yes' if gain >= MEAN_BAR else 'no'} |", "",
             *([facts["note"], ""] if facts.get("note") else []),
             "Milliseconds a call, best round; then times of the others over the searched plan's, medians over rounds; launches of each; and the calls "
             "after which compiling by search has paid for itself, against none and against greedy.", "",
             "| program | search | none | greedy | spread | launches: none, greedy, search | pays after: none, greedy |", "|---|---|---|---|---|---|---|"]  # fmt: skip
    for row in sorted(done, key=lambda row: min(over_plan(row, "none"), over_plan(row, "greedy"))):
        launches = ", ".join(str(row["launches"][mode]) for mode in ("none", "greedy", "search"))
        lines.append(f"| {row['workload']} {row['size']} | {min(row['seconds']['search']) * 1e3:.3f} | {over_plan(row, 'none'):.2f} "
                     f"| {over_plan(row, 'greedy'):.2f} | {spread(row):.2f} | {launches} "
                     f"| {break_even(row, 'none')}, {break_even(row, 'greedy')} |")  # fmt: skip
    for row in rows:
        if "seconds" not in row:
            lines.append(f"| {row['workload']} {row['size']} | {row.get('error') or row.get('skipped')} | | | | | |")
    return "\n".join(lines) + "\n"


def one(arguments, which):
    return workload.child(__file__, arguments, "--worker", which, "tokamak,cpu", 300)


def said(row):
    return f"none {over_plan(row, 'none'):.2f}, greedy {over_plan(row, 'greedy'):.2f}"


def middle_sizes(arguments):
    """NAME:SIZE of each micro workload, the middle one of its sizes."""
    workloads = workload.module(arguments)
    only = [name for name in arguments.only.split(",") if name]
    for name in workloads.names("micro"):
        sizes = workloads.sizes(name)
        if not only or name in only:
            yield name, sizes[len(sizes) // 2 if len(sizes) > 2 else 0]


def on_gpu(arguments):
    """All in this process: a GPU takes long to begin with, and a second process would disturb the first."""
    os.environ |= {"TOKAMAK_DEVICE": arguments.device, "JAX_PLATFORMS": "tokamak,cpu"}
    os.environ.setdefault("TOKAMAK_CACHE", "off")
    facts, rows, end = workload.facts_of(__file__), [], time.monotonic() + arguments.seconds
    import jax

    facts["device"] = jax.devices("tokamak")[0].device_kind
    for name, size in middle_sizes(arguments):
        row = {"workload": name, "size": size}
        arguments.worker = f"{name}:{size}"
        begin = time.monotonic()
        try:
            row |= {"skipped": "not begun in time"} if begin > end else measure(arguments)
        except Exception as error:  # the rest goes on
            row["error"] = str(error).split("\n")[0][:300]
        rows.append(row)
        words = row.get("error") or row.get("skipped") or said(row)
        print(f"{'FAILED ' if 'error' in row else ''}{name} {size}: {words}, {time.monotonic() - begin:.1f} s", flush=True)
    print(workload.write(arguments, facts, rows, page))
    done = [row for row in rows if "seconds" in row]
    slow = [f"{row['workload']} {row['size']}" for row in done if is_slower(row)]
    failed = len(slow) + sum("error" in row for row in rows)
    print(f"figure: slower than the better of unfused and greedy: {', '.join(slow) or 'none'} of {len(done)}; unfused / searched "
          f"{workload.mean(over_plan(row, 'none') for row in done):.2f} in the mean")  # fmt: skip
    print(f"tally: {len(done) - len(slow)} passed, {failed} failed, {len(rows) - len(done) - sum('error' in row for row in rows)} skipped")
    return 1 if failed or not done else 0


def main():
    parser = workload.parser(__doc__, "never_slower")
    parser.add_argument("--device", default="", help="a GPU: cuda")
    arguments = parser.parse_args()
    if arguments.device:
        arguments.name = "never_slower_cuda" if arguments.name == "never_slower" else arguments.name
        return on_gpu(arguments)
    rows = workload.run(arguments, __file__, sys.modules[__name__], sizes_of)
    return 1 if any("seconds" in row and is_slower(row) for row in rows or []) else 0


if __name__ == "__main__":
    sys.exit(main())
