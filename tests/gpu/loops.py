#!/usr/bin/env python3
"""Random loops (loop_bodies.py) on Tokamak and on XLA, on one device in one process, repetitions interleaved. Called by device.py.

    TOKAMAK_DEVICE=cuda JAX_PLATFORMS=tokamak,cuda,cpu tests/gpu/loops.py [--count 20] [--first 0] [--peer cuda] [--seconds 80]
    tests/gpu/loops.py --kernels ...   counts the kernels of each for --target, and runs nothing
    tests/gpu/loops.py --check ...     compares small ones with JAX's CPU, without timing

Bars: 90 % of the loops are one kernel each, none is slower than on XLA.
"""
import argparse
import concurrent.futures
import math
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("TOKAMAK_CACHE", "off")
sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2] / "bench")]

import jax
import loop_bodies
import numpy as np
import write_pages
from result_pages import common

ONE_KERNEL, SLOWEST = 0.9, 1.0  # bars
REPETITION_S, REPETITIONS = 0.03, 5
FLIPPED = 0.05  # fraction of elements that may differ in a check: numbers that round to another integer, or compare differently


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--peer", default="cuda", help="the other platform")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin to time no loop after this time")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--target", default="h200", help="whose kernels are counted")
    parser.add_argument("--out", type=Path, help="a folder for loops.json and the page loops.md")
    return parser.parse_args()


def counted(drawn, target):
    """(whether the loop is a kernel, launches of the program, reason if not)."""
    import tokamak

    report = tokamak.explain(drawn.function(), *drawn.arguments(), tokamak_target=target, tokamak_options={"compare": "false"}).data
    said = [d for d in report["decisions"] if d["rule"] == "loop.fuse"]
    rejected = [d["because"] for d in said if d["verdict"] == "rejected" and "its inner loop is a whole-loop kernel" not in d["because"]]
    return bool(said) and not rejected, report["fused"]["steps"], "; ".join(rejected)


class Side:
    def __init__(self, platform, drawn):
        device = jax.devices(platform)[0]
        self.args = jax.tree.map(lambda x: jax.device_put(x, device), drawn.arguments())
        begin = time.perf_counter()
        self.fn = jax.jit(drawn.function()).lower(*self.args).compile()
        self.compile_s = time.perf_counter() - begin
        self.best, self.calls = math.inf, 1

    def turn(self):
        begin = time.perf_counter()
        for _ in range(self.calls):
            out = self.fn(*self.args)
        jax.block_until_ready(out)
        took = (time.perf_counter() - begin) / self.calls
        self.best = min(self.best, took)
        self.calls = max(1, min(100, int(REPETITION_S / took)))
        return out


def difference(drawn, ours, theirs):
    """The fraction of integers that differ, and of floats that differ by more than a thousandth. Words that hold bits of floats are
    ignored."""
    worst = 0.0
    for x, y in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        if drawn.takes_bits and x.dtype == np.uint32 and x.shape == (drawn.n,):
            continue
        if x.dtype.kind in "biu":
            worst = max(worst, float(np.mean(x != y)))
            continue
        same = np.isclose(x, y, rtol=1e-3, atol=1e-3, equal_nan=True)
        worst = max(worst, float(np.mean(~same)))
    return worst


def timed(options):
    loops = {seed: loop_bodies.Drawn(seed) for seed in range(options.first, options.first + options.count)}
    end = time.time() + options.seconds
    rows, failed = [], 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        kernels = {seed: pool.submit(counted, drawn, options.target) for seed, drawn in loops.items()}
        sides = {seed: [pool.submit(Side, platform, drawn) for platform in ("tokamak", options.peer)] for seed, drawn in loops.items()}
        concurrent.futures.wait([f for pair in sides.values() for f in pair] + list(kernels.values()))
    for seed, drawn in loops.items():
        if time.time() > end:
            break
        try:
            ours, theirs = (f.result() for f in sides.pop(seed))
            one, launches, why = kernels[seed].result()
        except Exception as error:  # the other loops still run
            failed += 1
            print(f"FAILED {seed}: {drawn}: {str(error)[:300]}", flush=True)
            continue
        outs = [side.turn() for side in (ours, theirs)]
        for _ in range(REPETITIONS):
            for side in (ours, theirs):
                side.turn()
        row = {"seed": seed, "loop": str(drawn), "one_kernel": one, "launches": launches, "why": why, "ms": ours.best * 1e3, "peer_ms": theirs.best * 1e3,
               "ratio": theirs.best / ours.best, "compile_s": ours.compile_s, "peer_compile_s": theirs.compile_s, "differ": difference(drawn, *outs)}  # fmt: skip
        rows.append(row)
        print(f"{seed:4} {drawn}: {row['ms']:.3f} ms, XLA {row['peer_ms']:.3f}, {row['ratio']:.2f}; {'one kernel' if one else 'steps: ' + why}, {launches} launches; "
              f"compiled in {ours.compile_s:.1f} s, XLA {theirs.compile_s:.1f}; differ {row['differ']:.1e}", flush=True)  # fmt: skip
    if options.out:
        facts = {"command": "tests/gpu/run loops", "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "jax": jax.__version__,
                 "device": jax.devices("tokamak")[0].device_kind}  # fmt: skip
        common.save(options.out, "loops", {"facts": facts, "rows": rows})
        write_pages.write("loops", options.out)
    return rows, failed


def only_counted(options):
    rows = []
    for seed in range(options.first, options.first + options.count):
        drawn = loop_bodies.Drawn(seed)
        one, launches, why = counted(drawn, options.target)
        rows.append({"one_kernel": one, "ratio": math.inf})
        if not one:
            print(f"{seed:4} {drawn}: {launches} launches: {why}", flush=True)
    return rows, 0


def checked(options):
    """Compares with JAX's CPU; few iterations, so that rounding errors stay small."""
    failed = 0
    for seed in range(options.first, options.first + options.count):
        drawn = loop_bodies.Drawn(seed, small=True)
        try:
            off = difference(drawn, *(Side(platform, drawn).turn() for platform in ("tokamak", "cpu")))
        except Exception as error:  # the other loops still run
            off = math.inf
            print(str(error)[:400])
        if off > FLIPPED:
            failed += 1
            print(f"FAILED {seed}: {drawn}: {off:.1e} of its elements differ", flush=True)
    return [{"one_kernel": True, "ratio": math.inf}] * (options.count - failed), failed


def main():
    options = arguments()
    rows, failed = only_counted(options) if options.kernels else checked(options) if options.check else timed(options)
    ones, slow = sum(row["one_kernel"] for row in rows), [row["seed"] for row in rows if row["ratio"] < SLOWEST]
    print(f"{len(rows)} of {options.count} loops; one kernel: {ones} ({ones / max(1, len(rows)):.0%}, bar {ONE_KERNEL:.0%}); slower than XLA: {slow or 'none'}")
    if not options.kernels and not options.check and rows:
        print(f"figure: {ones} of {len(rows)} one kernel; XLA / Tokamak {math.exp(sum(math.log(row['ratio']) for row in rows) / len(rows)):.2f} in the geometric mean, least {min(row['ratio'] for row in rows):.2f}")
    bad = failed + len(slow) + (ones < ONE_KERNEL * len(rows))
    print(f"tally: {len(rows) - len(slow)} passed, {bad} failed, {options.count - len(rows) - failed} skipped")
    return 1 if bad or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
