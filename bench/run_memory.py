#!/usr/bin/env python3
"""Measures what memory the CPU backend takes against JAX's own: the peak of a process that makes a workload and calls it three times.

    bench/run_memory.py                   every size of the micro workloads
    bench/run_memory.py --quick           the first size of each
    bench/run_memory.py --only 'softmax:*,adam:small200'

Writes docs/results/memory.md and memory.json. A figure is ru_maxrss of a process of its own, the lesser of two: Python, JAX, the
library, the compiler at work, arrays of the host and of the device. It needs no quiet machine.
"""
import json
import resource
import sys
import time
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
    """The lesser of two processes' peaks, or what went wrong."""
    told = [workload.child(__file__, arguments, "--worker", name, side, 300) for _ in range(2)]
    errors = [of["error"] for of in told if "error" in of]
    return {"error": errors[0]} if errors else {"kib": min(of["peak_kib"] for of in told)}


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
    lines += [f"| {row['workload']} {row['size']} | {row['error']} | | |" for row in rows if "error" in row]
    return "\n".join(lines) + "\n"


def main():
    arguments = workload.parser(__doc__, "memory").parse_args()
    if arguments.worker:
        print(json.dumps(measure(arguments)))
        sys.stdout.flush()
        return 0
    facts, rows, end = workload.facts_of(__file__), [], time.monotonic() + arguments.seconds
    for name, size in workload.selected(arguments):
        if time.monotonic() > end:
            rows.append({"workload": name, "size": size, "error": "not begun in time"})
            continue
        told = {side: peak(arguments, f"{name}:{size}", side) for side in SIDES}
        errors = [of["error"] for of in told.values() if "error" in of]
        rows.append({"workload": name, "size": size} | ({"error": errors[0]} if errors else {"peak_kib": {s: of["kib"] for s, of in told.items()}}))
        print(f"{name} {size}: {errors[0] if errors else round(ratio(rows[-1]), 2)}", file=sys.stderr, flush=True)
        workload.write(arguments, facts, rows, page)  # what is there stays, however this ends
    print(workload.write(arguments, facts, rows, page))
    return 0 if all("peak_kib" in row and ratio(row) <= 1 for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
