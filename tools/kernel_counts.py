#!/usr/bin/env python3
"""Counts the kernels that the planner makes of the workloads of bench/workloads.py on an H200, and checks their values.

    tools/kernel_counts.py
    tools/kernel_counts.py --only softmax,adam --tokamak build/bin/tokamak

One row per workload: launches as `tokamak explain --json --target h200` counts them (library calls, copies and host calls count one
each) against the bar, next to XLA's count. The same program at a reduced size: its GPU kernels are run by the simulator and
compared with the interpreter. Exits 1 if a bar is missed or a value differs, 77 without JAX
(ctest name fusion.kernel_counts: half a minute of work, most of it the step of a BERT-base). Needs no GPU.
"""
import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = 77
# Name: size, bar, XLA's count if known, and the reduced program for the simulator.
PROGRAMS = {
    "dropout": ("1048576", 1, 2, "dropout:4096"),
    "logsumexp": ("65536x1024", 1, 4, "logsumexp:65x256"),
    "residual_dropout_layernorm": ("8192x768", 1, 4, "residual_dropout_layernorm:24x96"),
    "layernorm_dropout": ("8192x768", 1, None, "layernorm_dropout:24x96"),
    "layernorm_bwd": ("8192x768", 2, 5, "layernorm_bwd:512x96"),
    "concat_multi": ("262144", 1, 4, "concat_multi:512"),
    "softmax": ("524288x128", 1, None, "softmax:65x128"),
    "rmsnorm_bf16": ("8192x4096", 1, None, "rmsnorm_bf16:33x256"),
    "argmax": ("65536x1024", 1, None, "argmax:65x256"),
    "adam": ("bert", 2, 156, "adam:small200"),
    "adam small200": ("small200", 2, 604, "adam:small200"),
    "cartpole_naive": ("2048", 1, 7, "cartpole_naive:48"),
    # Calls of cuBLASLt count, as they do for XLA.
    # 447: 12 of them store operands that dots read in another shape, and take 2.4 ms off a predicted 24.9.
    "bert_train_do10": (None, 450, 1002, "bert_tiny_train_do10:b4_s32"),
}


def lower(workloads, which, folder):
    """The workload NAME:SIZE as StableHLO text; without a size, its first."""
    import jax

    name, _, size = which.partition(":")
    work = workloads.workload(name, size or workloads.sizes(name)[0])
    path = folder / f"{name}.mlir"
    path.write_text(jax.jit(work.fn, donate_argnums=tuple(range(work.carry))).lower(*work.args).as_text())
    return path


def launches(tokamak, path):
    report = json.loads(subprocess.run([tokamak, "explain", "--json", "--target", "h200", path], capture_output=True, text=True, check=True).stdout)
    # Copies due to donation are not launches of the plan: `tokamak explain` lists them.
    return report["fused"]["kernels"] + report["fused"]["library_calls"]


def difference(tokamak, path, folder):
    """The simulator's differences from the interpreter; "" if they agree."""
    right = folder / "right.npz"
    subprocess.run([tokamak, "run", path, "--backend", "interp", "--seed", "1", "--outputs", right], capture_output=True, check=True)
    done = subprocess.run([tokamak, "run", path, "--backend", "sim-gpu", "--seed", "1", "--expect", right], capture_output=True, text=True)
    return "" if done.returncode == 0 else (done.stderr or done.stdout).strip().splitlines()[0][:120]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", type=Path, default=ROOT / "bench/workloads.py")
    parser.add_argument("--tokamak", default=str(ROOT / "build/bin/tokamak"))
    parser.add_argument("--only", default="", help="names, commas between them")
    arguments = parser.parse_args()
    if importlib.util.find_spec("jax") is None:
        print("skipped: there is no JAX for this Python (scripts/bootstrap makes a .venv that has it)")
        return SKIPPED
    os.environ["JAX_PLATFORMS"] = "cpu"
    sys.path.insert(0, str(arguments.workloads.resolve().parent))
    import workloads

    rows = []
    print(f"{'workload':32} {'launches':>8} {'bar':>5} {'XLA':>5}  values, reduced")
    for name, (size, bar, xla, reduced) in PROGRAMS.items():
        if arguments.only and name not in arguments.only.split(","):
            continue
        with tempfile.TemporaryDirectory() as folder:
            full = name.split()[0] + (f":{size}" if size else "")
            count = launches(arguments.tokamak, lower(workloads, full, Path(folder)))
            wrong = difference(arguments.tokamak, lower(workloads, reduced, Path(folder)), Path(folder))
        rows.append({"workload": name, "size": size, "launches": count, "bar": bar, "xla": xla, "reduced": reduced, "wrong": wrong})
        print(f"{name:32} {count:8} {bar:5} {xla or '-':>5}  {reduced}: {wrong or 'equal'}{'  MISSED' if count > bar or wrong else ''}", flush=True)
    return 1 if any(row["launches"] > row["bar"] or row["wrong"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
