#!/usr/bin/env python3
"""Compares plans: no workload may be slower with the searched plan than unfused or greedily fused.

    bench/never_slower.py                 three sizes of each micro workload: its first, and two smaller ones
    bench/never_slower.py --quick         one size of each
    bench/never_slower.py --only 'softmax:*,adam:small200'
    bench/never_slower.py --device cuda   on the GPU, the middle size of each workload: never_slower_cuda.json

Writes never_slower.json (--name: another name) and the page never_slower.md in docs/results. One process per workload compiles the program with each mode of
tokamak_fusion, the searched plan twice (their difference is the noise), and calls them interleaved, at least 15 repetitions. A figure is
the median over repetitions of the ratio to the searched plan in the same repetition. Run it on an idle machine.
"""
import contextlib
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import cpu_sizes
import workload
from result_pages.common import mean
from result_pages.never_slower import is_slower, over_plan

MODES = {"none": "none", "greedy": "greedy", "search": "search", "repeat": "search"}
SIZES, REPETITIONS, REPETITION_S, LIMIT_S = 3, 15, 0.01, 1.0
SLOW, SLOW_REPETITIONS = 2, 3  # a mode this many times as slow runs in the first repetitions only
PAGE = "never_slower"
KEPT = []  # keeps callbacks of the library alive
# Sizes of workloads that cpu_sizes.py does not list.
MORE = {"sort": ["4096", "65536"], "attn_causal_do_bwd": ["b1_s128", "b1_s512"], "attn_sdpa_bwd": ["b1_s128", "b1_s512"],
        "heat3d_loop10": ["32", "128"]}  # fmt: skip


def sizes_of(name, sizes):
    """The workload's first size and two smaller ones, or others listed in MORE."""
    return list(dict.fromkeys(sizes[:1] + (cpu_sizes.SIZES | MORE).get(name, [])[:2] + sizes[1:]))[:SIZES]


def measure(arguments):
    """One workload: seconds per call of each mode, repetition by repetition."""
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
    calls = {name: max(1, min(400, int(REPETITION_S / max(s, 1e-6)))) for name, s in once.items()}
    seconds = {name: [] for name in MODES}
    for turn in range(REPETITIONS):
        for name, program in programs.items():
            if turn >= SLOW_REPETITIONS and name in ("none", "greedy") and min(seconds[name]) > SLOW * max(seconds["search"]):
                continue
            begin = time.perf_counter()
            for _ in range(calls[name]):
                out = program(*given)
            jax.block_until_ready(out)
            seconds[name].append((time.perf_counter() - begin) / calls[name])
    KEPT.append(hold)
    return {"seconds": seconds, "launches": launches, "prepare_us": prepare_us}


def one(arguments, which):
    return workload.child(__file__, arguments, "--worker", which, "tokamak,cpu", 300)


def said(row):
    return f"none {over_plan(row, 'none'):.2f}, greedy {over_plan(row, 'greedy'):.2f}"


def middle_sizes(arguments):
    """NAME:SIZE of each micro workload, with its middle size."""
    workloads = workload.module(arguments)
    only = [name for name in arguments.only.split(",") if name]
    for name in workloads.names("micro"):
        sizes = workloads.sizes(name)
        if not only or name in only:
            yield name, sizes[len(sizes) // 2 if len(sizes) > 2 else 0]


def on_gpu(arguments):
    """All in this process: a GPU takes long to initialize, and a second process would disturb the first."""
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
        except Exception as error:  # the other workloads still run
            row["error"] = str(error).split("\n")[0][:300]
        rows.append(row)
        words = row.get("error") or row.get("skipped") or said(row)
        print(f"{'FAILED ' if 'error' in row else ''}{name} {size}: {words}, {time.monotonic() - begin:.1f} s", flush=True)
    print(workload.write(arguments, facts, rows, PAGE))
    done = [row for row in rows if "seconds" in row]
    slow = [f"{row['workload']} {row['size']}" for row in done if is_slower(row)]
    failed = len(slow) + sum("error" in row for row in rows)
    print(f"figure: slower than the better of unfused and greedy: {', '.join(slow) or 'none'} of {len(done)}; unfused / searched "
          f"{mean(over_plan(row, 'none') for row in done):.2f} in the mean")  # fmt: skip
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
