#!/usr/bin/env python3
"""Tokamak against XLA on one GPU, interleaved in one process: micro workloads without contractions, or those named.

    TOKAMAK_DEVICE=cuda JAX_PLATFORMS=tokamak,cuda,cpu bench/run_cuda.py [--quick] [--seconds 110] [--only NAME[:SIZE],...] [--out DIR]

`us` is back-to-back calls with one wait at the end, the least of several repetitions that alternate between both sides: the device
time of large programs, and the dispatch time of small ones (under 60 us). `GB/s` counts inputs read once and results
written once. `compile` is the first compilation of the program in this process, without a disk cache. Results of both are
compared if they are small enough to fetch. `of copy` is the time of the faster of both copy kernels (x times a constant) for the
same number of bytes, read and written, over Tokamak's: for memory-bound workloads.
"""
import argparse
import datetime
import fnmatch
import functools
import math
import os
import sys
import time
import types
from pathlib import Path

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("TOKAMAK_CACHE", "off")

import own_python  # noqa: F401, must be first: it may re-execute with another Python
import jax
import numpy as np
import write_pages
from differences import worst_difference
from result_pages import common

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 2.5e9  # of a workload's arrays
MOST_FETCHED = 64 << 20
MEAN_BAR, NONE_BAR, COMPILE_BAR = 1.3, 0.95, 0.7
COPY_BAR, COPY_BYTES = 0.92, 2**28  # for workloads of at least this many bytes
BANDWIDTH = ("scale", "triad", "gelu", "softmax_bf16", "logsumexp", "layernorm_fwd", "rmsnorm_bf16", "dropout_rbg", "col_reduce", "full_reduce",
             "transpose", "argmax", "cumsum")  # fmt: skip
CONTRACTIONS = ("dot_general", "conv_general_dilated", "ragged_dot")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", type=Path, default=ROOT / "bench/workloads.py")
    parser.add_argument("--only", default="", help="NAME[:SIZE] of any group, with * and ?; commas between them")
    parser.add_argument("--skip", default="", help="workloads that are left out, with commas between them")
    parser.add_argument("--check-bars", action="store_true", help="exit 1 when a bar is missed")
    parser.add_argument("--quick", action="store_true", help="one size of each: the largest that fits")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no workload after this time")
    parser.add_argument("--peer", default="cuda", help="the other platform")
    parser.add_argument("--turn", type=float, default=0.02, help="seconds of a turn")
    parser.add_argument("--out", type=Path, help="a folder for cuda.json (--name: another name) and the page cuda.md")
    parser.add_argument("--name", default="cuda")
    return parser.parse_args()


class Side:
    def __init__(self, platform):
        self.device = jax.devices(platform)[0]

    def prepare(self, work):
        self.args = [jax.tree.map(lambda x: jax.device_put(x, self.device), a) for a in work.args]
        jax.block_until_ready(self.args)
        lowered = jax.jit(work.fn).lower(*self.args)
        begin = time.perf_counter()
        self.fn = lowered.compile()
        self.compile_ms = (time.perf_counter() - begin) * 1e3
        self.out = jax.block_until_ready(self.fn(*self.args))
        self.best = math.inf
        self.calls = 1

    def turn(self, seconds):
        fn, args = self.fn, self.args
        begin = time.perf_counter()
        for _ in range(self.calls):
            out = fn(*args)
        jax.block_until_ready(out)
        took = (time.perf_counter() - begin) / self.calls
        self.best = min(self.best, took)
        self.calls = max(3, min(1000, int(seconds / took)))

    def forget(self):
        self.args = self.fn = self.out = None


def sizes_of(workloads, name, quick):
    """With --quick: the largest last, to be tried first."""
    sizes = list(workloads.sizes(name))
    return sizes[::-1] if quick else sizes


def has_contraction(work):
    text = str(jax.make_jaxpr(work.fn)(*work.args))
    return any(word in text for word in CONTRACTIONS)


def measure(work, sides, options):
    for side in sides:
        side.prepare(work)
    for _ in range(7):
        for side in sides:
            side.turn(options.turn)
    ours, theirs = sides
    moved = sum(x.nbytes for x in jax.tree.leaves((ours.args, ours.out)))
    fetched = sum(x.nbytes for x in jax.tree.leaves(ours.out))
    row = {"name": work.name, "size": work.size, "us": ours.best * 1e6, "peer_us": theirs.best * 1e6, "ratio": theirs.best / ours.best,
           "gbs": moved / ours.best / 1e9, "compile_ms": ours.compile_ms, "peer_compile_ms": theirs.compile_ms,
           "difference": worst_difference(ours.out, theirs.out) if fetched <= MOST_FETCHED else None}  # fmt: skip
    for side in sides:
        side.forget()
    if work.name in BANDWIDTH and moved >= COPY_BYTES:
        row["of_copy"] = copy_us(tuple(sides), moved, options.turn) / row["us"]
    return row


@functools.cache
def copy_us(sides, moved, turn):
    """The time of the faster of their kernels that read half of the bytes and write the other half."""
    for side in sides:
        with jax.default_device(side.device):
            x = jax.jit(lambda: jax.numpy.full(moved // 8, 2.5, np.float32))()
        side.prepare(types.SimpleNamespace(fn=lambda x: x * np.float32(1.5), args=[x]))
    for _ in range(5):
        for side in sides:
            side.turn(turn)
    best = min(side.best for side in sides) * 1e6
    for side in sides:
        side.forget()
    return best


def missed_bars(rows):
    """The missed bars, and a line of figures."""
    total, compiling = common.mean(r["ratio"] for r in rows), common.mean(r["compile_ms"] / r["peer_compile_ms"] for r in rows)
    slower = [f"{r['name']}:{r['size']} {r['ratio']:.2f}" for r in rows if r["ratio"] < NONE_BAR]
    copies = [r for r in rows if "of_copy" in r]
    late = [f"{r['name']}:{r['size']} {r['of_copy']:.2f}" for r in copies if r["of_copy"] < COPY_BAR]
    missed = total < MEAN_BAR or compiling > COMPILE_BAR or bool(slower) or bool(late)
    return missed, (f"XLA / Tokamak {total:.2f} in the mean of {len(rows)}, compiling {compiling:.2f} of XLA's, below {NONE_BAR}: "
                    f"{', '.join(slower) or 'none'}; of {len(copies)} that memory bounds below {COPY_BAR} of a copy: {', '.join(late) or 'none'}")  # fmt: skip


def main():
    options = arguments()
    sys.path.insert(0, str(options.workloads.resolve().parent))
    import workloads

    cpu = jax.devices("cpu")[0]
    sides = [Side("tokamak"), Side(options.peer)]
    wanted = [p if ":" in p else p + ":*" for p in options.only.split(",") if p]
    rows, missed, end = [], [], time.time() + options.seconds
    for name in workloads.names() if wanted else workloads.names("micro"):
        if name in options.skip.split(","):
            continue
        for size in sizes_of(workloads, name, options.quick):
            label = f"{name}:{size}"
            if wanted and not any(fnmatch.fnmatch(label, p) for p in wanted):
                continue
            if time.time() > end:
                missed.append((label, "not begun in time"))
                break
            try:
                with jax.default_device(cpu):
                    work = workloads.workload(name, size)
                    bytes_of = sum(x.nbytes for x in jax.tree.leaves(work.args))
                    if bytes_of > MOST_BYTES:
                        continue
                    if not wanted and (work.calls or has_contraction(work)):
                        break
                row = measure(work, sides, options)
            except Exception as error:  # the other workloads still run
                missed.append((label, str(error).split("\n")[0][:200]))
                print(f"FAILED {label}: {str(error)[:300]}", flush=True)
                for side in sides:
                    side.forget()
                continue
            rows.append(row)
            print(f"{label:36} {row['us']:9.1f} us, XLA {row['peer_us']:9.1f}, {row['ratio']:5.2f} x, {row['gbs']:5.0f} GB/s, compile "
                  f"{row['compile_ms']:4.0f} / {row['peer_compile_ms']:4.0f} ms", flush=True)  # fmt: skip
            if options.quick:
                break
    if options.out:
        facts = {"command": common.command("bench/run_cuda.py"), "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
                 "device": sides[0].device.device_kind, "jax": jax.__version__,
                 "what": options.only or "workloads without contractions"}  # fmt: skip
        common.save(options.out, options.name, {"facts": facts, "rows": rows, "missed": missed})
        print(write_pages.write("cuda", options.out, options.name))
    failed = sum(why != "not begun in time" for _, why in missed)
    below, figure = missed_bars(rows)
    print(f"figure: {figure}")
    print(f"tally: {len(rows)} passed, {failed} failed, {len(missed) - failed} skipped")
    return 1 if failed or not rows or (options.check_bars and below) else 0


if __name__ == "__main__":
    sys.exit(main())
