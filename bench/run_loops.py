#!/usr/bin/env python3
"""Loops on the CPU against JAX's CPU backend: loops with bars, and plain programs as users write them (loop_programs.py).

    bench/run_loops.py                 all of it
    bench/run_loops.py --only bars     a part of it: bars, plain
    bench/run_loops.py --only plain --programs kalman,viterbi

Writes loops_cpu.json (--name: another name) and the page loops_cpu.md in docs/results. Both platforms run in one process, interleaved; a figure is the best repetition.
Run it on an idle machine.
"""
import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from platform import machine

sys.path.insert(0, str(Path(__file__).resolve().parent))
import workload
import write_pages
from result_pages import common

ROOT = workload.ROOT
sys.path.insert(0, str(ROOT / "python"))
os.environ |= {"JAX_PLATFORMS": "tokamak,cpu", "TOKAMAK_DEVICE": "cpu", "TOKAMAK_CACHE": "off"}
REPETITION_S = 0.03
LSTM_BAR = 3.0 if machine() == "x86_64" else 1.6
BARS = {"lstm_scan:32x256x1000": LSTM_BAR, "cartpole_scan:16": 3.0, "cartpole_scan:2048": 8.0}  # XLA / Tokamak
SCALAR_STEPS = 10_000_000
C_LOOP = """
float loop(float x, float a, int n) {
  for (int i = 0; i < n; ++i) x = x * a + (x > 1.0f ? -0.75f : 0.25f);
  return x;
}
"""


def seconds(call, repetitions=1, at_least=1):
    """The best of several repetitions."""
    best, once = float("inf"), None
    for _ in range(repetitions):
        count = max(at_least, min(200, int(REPETITION_S / once))) if once else 1
        begin = time.perf_counter()
        for _ in range(count):
            out = call()
        import jax

        jax.block_until_ready(out)
        once = (time.perf_counter() - begin) / count
        best = min(best, once)
    return best


def compared(fn, arguments, repetitions):
    """Tokamak and JAX's CPU on one program, interleaved."""
    import jax
    import numpy as np
    from differences import worst_difference

    host = jax.tree.map(np.asarray, tuple(arguments))
    sides, row, out = {}, {"seconds": {}, "compile_s": {}}, {}
    for platform in ("tokamak", "cpu"):
        device = jax.devices(platform)[0]
        with jax.default_device(device):
            placed = jax.tree.map(lambda x: jax.device_put(x, device), host)
            begin = time.perf_counter()
            program = jax.jit(fn).lower(*placed).compile()
            row["compile_s"][platform] = time.perf_counter() - begin
        sides[platform] = lambda program=program, placed=placed: program(*placed)
        out[platform] = jax.tree.map(np.asarray, jax.block_until_ready(sides[platform]()))
    row["difference"] = worst_difference(out["tokamak"], out["cpu"])
    best = {platform: float("inf") for platform in sides}
    for _ in range(repetitions):
        for platform, call in sides.items():
            best[platform] = min(best[platform], seconds(call, 2))
    row["seconds"] = best
    return row


def bars():
    import jax
    import workloads
    from jax import lax

    rows = {}
    for name, bar in BARS.items():
        work = workloads.workload(*name.split(":"))
        rows[name] = {**compared(work.fn, work.args, 4), "bar": bar}
        print(name, rows[name]["seconds"], flush=True)

    def scalar(x, a):
        return lax.fori_loop(0, SCALAR_STEPS, lambda i, x: x * a + lax.select(x > 1.0, -0.75, 0.25), x)

    row = compared(scalar, (jax.numpy.float32(0.5), jax.numpy.float32(0.9)), 3)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "loop.c").write_text(C_LOOP)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", f"{folder}/loop.so", f"{folder}/loop.c"], check=True)
        loop = ctypes.CDLL(f"{folder}/loop.so").loop
        loop.restype, loop.argtypes = ctypes.c_float, [ctypes.c_float, ctypes.c_float, ctypes.c_int]
        row["seconds"]["c"] = seconds(lambda: loop(0.5, 0.9, SCALAR_STEPS), 4)
    rows["scalar"] = row
    print("scalar", row["seconds"], flush=True)
    return rows


def plain(wanted):
    import jax
    import loop_programs

    rows = {}
    for name, make in loop_programs.PROGRAMS.items():
        if wanted and name not in wanted:
            continue
        with jax.default_device(jax.devices("cpu")[0]):
            fn, arguments = make()
        rows[name] = {**compared(fn, arguments, 3), "about": make.__doc__, "loose": make.loose}
        times = rows[name]["seconds"]
        print(f"{name} {times['cpu'] / times['tokamak']:.2f} {rows[name]['difference']:.1e}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["bars", "plain"])
    parser.add_argument("--programs", default="", help="names of loop_programs.py, commas between them")
    parser.add_argument("--workloads", type=Path, default=ROOT / "bench/workloads.py")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results")
    parser.add_argument("--name", default="loops_cpu")
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.workloads.resolve().parent))
    measured = {"facts": {}}
    for part in ("bars", "plain"):
        if arguments.only not in (None, part):
            continue
        facts = workload.facts_of(__file__)
        measured[part] = bars() if part == "bars" else plain({name for name in arguments.programs.split(",") if name})
        measured["facts"][part] = facts
        common.save(arguments.out, arguments.name, measured)  # results so far are kept however this ends
        text = write_pages.write("loops_cpu", arguments.out, arguments.name)
    print(text)


if __name__ == "__main__":
    main()
