#!/usr/bin/env python3
"""Measures the memory of the CPU backend against JAX's: the peak of a process that builds a workload and calls it three times.

    bench/run_memory.py                   every size of the micro workloads
    bench/run_memory.py --quick           the first size of each
    bench/run_memory.py --only 'softmax:*,adam:small200'

Writes docs/results/memory.md and memory.json. A figure is ru_maxrss of a separate process, the lesser of two: Python, JAX, the
library, the compiler at work, arrays of the host and of the device. It does not need an idle machine.
"""
import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import workload
from result_pages.memory import ratio

PAGE = "memory"
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
