#!/usr/bin/env python3
"""Measures the memory of the CPU backend against JAX's: the peak of a process that builds a workload and calls it three times.

    bench/run_memory.py                   every size of the micro workloads
    bench/run_memory.py --quick           the first size of each
    bench/run_memory.py --only 'softmax:*,adam:small200'

Writes docs/results/memory.md and memory.json. A figure is ru_maxrss of a separate process, the lesser of two: Python, JAX, the
library, the compiler at work, arrays of the host and of the device. It does not need an idle machine.
"""
import json
import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import workload

SIDES = ("tokamak", "cpu")


def measure(arguments):
    import jax

    work = workload.load(arguments, arguments.worker)
    jit = jax.jit(work.fn, donate_argnums=tuple(range(work.carry)))
    given, work.args, carry = tuple(work.args), None, work.carry
    for _ in range(3):
        out = jax.block_until_ready(jit(*given))
        if carry:
            given = tuple(out[:carry]) + given[carry:]
        del out
    return {"peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}


def peak(arguments, name, side):
    """The lesser of two processes' peaks, or an error."""
    report = [workload.child(__file__, arguments, "--worker", name, side, 300) for _ in range(2)]
    errors = [of["error"] for of in report if "error" in of]
    return {"error": errors[0]} if errors else {"kib": min(of["peak_kib"] for of in report)}


def ratio(row):
    return row["peak_kib"]["tokamak"] / row["peak_kib"]["cpu"]


def page(facts, rows):
    done = [row for row in rows if "peak_kib" in row]
    over = [f"{row['workload']} {row['size']} {ratio(row):.2f}" for row in done if ratio(row) > 1]
    lines = [f"`{facts['command']}` measured this.", "", "# Memory of the CPU backend against JAX's own", "",
             f"{facts['cpu']}, {facts['cores']} cores, {facts['memory']} GiB; {facts['system']}; JAX {facts['jax']}; commit {facts['commit']}; "
             f"{facts['date']}. MiB at the peak of a process, the lesser of two.", "",
             "| what | bar | met |", "|---|---|---|",
             f"| above JAX's: {', '.join(over) or 'none'} | none of {len(done)} | {'no' if over else 'yes'} |",
             f"| geometric mean: {workload.mean(map(ratio, done)):.2f} of JAX's | | |", "",
             "| program | Tokamak | JAX | ratio |", "|---|---|---|---|"]  # fmt: skip
    for row in sorted(done, key=ratio, reverse=True):
        kib = row["peak_kib"]
        lines.append(f"| {row['workload']} {row['size']} | {kib['tokamak'] / 1024:.0f} | {kib['cpu'] / 1024:.0f} | {ratio(row):.2f} |")
    for row in rows:
        if "peak_kib" not in row:
            lines.append(f"| {row['workload']} {row['size']} | {row.get('error') or row.get('skipped')} | | |")
    return "\n".join(lines) + "\n"


def one(arguments, which):
    report = {side: peak(arguments, which, side) for side in SIDES}
    errors = [of["error"] for of in report.values() if "error" in of]
    return {"error": errors[0]} if errors else {"peak_kib": {side: of["kib"] for side, of in report.items()}}


def said(row):
    return f"{ratio(row):.2f}"


def main():
    arguments = workload.parser(__doc__, "memory").parse_args()
    rows = workload.run(arguments, __file__, sys.modules[__name__])
    return 0 if all("peak_kib" in row and ratio(row) <= 1 for row in rows or []) else 1


if __name__ == "__main__":
    sys.exit(main())
