#!/usr/bin/env python3
"""Measures the default pipeline: how far it reduces real programs, and how long it takes.

    bench/run_passes.py                          needs build/bin/tokamak
    bench/run_passes.py --repetitions 5 --only cartpole

Prints tables. Programs: every workload of workloads.py at its first size, lowered
by JAX here; every program of the JAX corpus, if $TOKAMAK_CORPUS has it; large ones of bench/make_large.py. A time is the sum over the
passes of a run of `tokamak opt`, in a separate process bound to one core; repetitions iterate over all programs, the best counts.
"""
import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import own_python  # noqa: F401

ROOT = Path(__file__).resolve().parent.parent
LARGE = ("chain", "ladder", "parameters", "concatenate", "mixed")
COUNTS = (10_000, 100_000)
# In milliseconds.
BARS = {"tiny_jit": 0.3, "bert_train_do10": 500.0, 10_000: 300.0, 100_000: 4000.0}
RANDOM = ("threefry", "rng-bit-generator")

# Runs in a separate process, so that this one does not need JAX: lowers the workloads into a folder.
LOWER = """
import sys, jax
sys.path.insert(0, sys.argv[1])
import workloads
for name in workloads.REG:
    if sys.argv[3] not in name: continue
    try:
        w = workloads.workload(name, workloads.sizes(name)[0])
        for flag, value in w.config.items(): jax.config.update(flag, value)
        text = jax.jit(w.fn).lower(*w.args).as_text()
        for flag, value in w.config.items(): jax.config.update(flag, not value)
        open(f"{sys.argv[2]}/{name}.mlir", "w").write(text)
    except Exception as fault:
        print(f"{name}: not lowered: {str(fault).splitlines()[0][:120]}", file=sys.stderr)
"""


def optimize(tokamak, path, core):
    """Instructions before and after, milliseconds of all passes, and the ops that draw random numbers."""
    left = path.with_suffix(".left")  # --json occupies standard output
    done = subprocess.run([tokamak, "opt", str(path), "--json", "-o", str(left)], capture_output=True, text=True, check=False,
                          preexec_fn=lambda: os.sched_setaffinity(0, {core}))  # fmt: skip
    if done.returncode != 0:
        sys.exit(f"tokamak opt {path}: {done.stderr.strip()[:500]}")
    lines = done.stdout.splitlines()
    report = next(json.loads(line) for line in reversed(lines) if line.startswith('{"'))
    passes = [row for program in report["programs"] for row in program["passes"]]
    ops = Counter(word for line in left.read_text().splitlines() for word in RANDOM if f" {word}" in line and "= " in line)
    before = sum(program["passes"][0]["instructions"] for program in report["programs"] if program["passes"])
    after = sum(program["passes"][-1]["after"] for program in report["programs"] if program["passes"])
    return {"before": before, "after": after, "ms": sum(row["ms"] for row in passes), "random": sum(ops.values())}


def collect(arguments, folder):
    """(group, name, path) of every program."""
    corpus = Path(os.environ.get("TOKAMAK_CORPUS", "")) / "jax.tar.zst"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    lowered = arguments.folder or folder
    lowered.mkdir(parents=True, exist_ok=True)
    if not any(lowered.glob("*.mlir")):
        subprocess.run([arguments.python, "-c", LOWER, str(ROOT / "bench"), str(lowered), arguments.only], env=environment, check=True)
    programs = [("bench", path.stem, path) for path in sorted(lowered.glob("*.mlir")) if arguments.only in path.stem]
    if corpus.is_file():
        subprocess.run(["tar", "--zstd", "-xf", str(corpus), "-C", str(folder)], check=True)
    else:
        print("skipped: the JAX corpus (TOKAMAK_CORPUS says where it is)", file=sys.stderr)
    programs += [("jax", p.parent.name, p) for p in sorted(folder.rglob("stablehlo.mlir")) if arguments.only in p.parent.name]
    for kind in LARGE:
        for count in COUNTS:
            path = folder / f"{kind}_{count}.hlo"
            with path.open("w") as out:
                subprocess.run([sys.executable, str(ROOT / "bench/make_large.py"), kind, str(count)], stdout=out, check=True)
            programs.append(("large", f"{kind} {count}", path))
    return programs


def measure(arguments, programs):
    results = {}
    for round_ in range(arguments.repetitions):
        for number, (group, name, path) in enumerate(programs):
            if sys.stderr.isatty():
                print(f"\rround {round_ + 1} of {arguments.repetitions}, {number + 1} of {len(programs)}", end="", file=sys.stderr)
            row = optimize(arguments.tokamak, path, arguments.core)
            kept = results.setdefault((group, name), row)
            kept.setdefault("all_ms", []).append(round(row["ms"], 3))
            kept["ms"] = min(kept["ms"], row["ms"])
    return results


def bar_of(group, name):
    return BARS.get(int(name.split()[1]) if group == "large" else name)


def table(results, group):
    rows = ["| program | instructions | after | random ops | ms | bar |", "|---|---|---|---|---|---|"]
    for (of, name), row in results.items():
        if of == group:
            bar = bar_of(group, name)
            met = "" if bar is None else f"{bar:g} {'met' if row['ms'] <= bar else 'NOT met'}"
            rows.append(f"| {name} | {row['before']} | {row['after']} | {row['random']} | {row['ms']:.2f} | {met} |")
    return "\n".join(rows)


def growth(results):
    """How much longer an instruction takes in a program ten times as large."""
    rows = ["| kind | us an instruction, 10,000 | 100,000 | ratio (bar 1.3) |", "|---|---|---|---|"]
    for kind in LARGE:
        small, large = (results[("large", f"{kind} {count}")] for count in COUNTS)
        each = [1e3 * row["ms"] / row["before"] for row in (small, large)]
        rows.append(f"| {kind} | {each[0]:.2f} | {each[1]:.2f} | {each[1] / each[0]:.2f} |")
    rows.append("""
Each time is that of a process of its own. Work grows with the program and no faster (tests/passes_large.py); what is over 1
in the last column is memory: 10,000 instructions of 192 bytes lie in the second-level cache, 100,000 do not.""")
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokamak", default=str(ROOT / "build/bin/tokamak"))
    parser.add_argument("--python", default=sys.executable, help="a Python that has JAX")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--folder", type=Path, help="where the lowered workloads are, or are put and stay")
    parser.add_argument("--only", default="", help="programs whose name holds this text")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        programs = collect(arguments, Path(folder))
        results = measure(arguments, programs)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end"
    sums = {g: [sum(r[k] for (of, _), r in results.items() if of == g) for k in ("before", "after")] for g in ("bench", "jax")}
    text = f"""# The default pipeline on real programs

{datetime.date.today()}, {machine}; best of {arguments.repetitions} repetitions. Instructions of all computations, before and after.
`bench/workloads.py`: {sums['bench'][0]} become {sums['bench'][1]}. The JAX corpus: {sums['jax'][0]} become {sums['jax'][1]}.

## Large programs

{table(results, "large")}

{growth(results)}

## The workloads of bench/workloads.py

{table(results, "bench")}

## The JAX corpus

{table(results, "jax")}
"""
    print(text)


if __name__ == "__main__":
    main()
