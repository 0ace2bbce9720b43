#!/usr/bin/env python3
"""Measures the CPU backend against JAX's: run time and compile time of the micro workloads (memory: bench/run_memory.py).

    bench/run_cpu.py                      every size that takes less than a second on JAX's CPU backend
    bench/run_cpu.py --quick              the first size of each workload, fewer repetitions
    bench/run_cpu.py --only 'softmax:*,adam:small200'

Writes cpu.json (--name: another name) and the page cpu.md in docs/results. One process per workload loads both platforms and calls them
alternately, a batch of calls each; a figure is the best batch, its spread the median over it. Results are compared at every
size. Both are also timed with inputs that change from call to call. Programs that Tokamak interprets in part are listed separately.
Run it on an idle machine.
"""
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import exact
import workload
from differences import worst_difference
from result_pages.cpu import SIDES, allowed, ratio, summary

PAGE = "cpu"
LIMIT_S = 1.0  # per call on JAX's CPU backend


# ---- in a separate process: one workload


class Side:
    """One platform's copy of a workload."""

    def __init__(self, name, work, sets):
        import jax

        self.jax, self.name, self.work = jax, name, work
        device = jax.devices(name)[0]
        self.sets = [jax.tree.map(lambda a: jax.device_put(a, device), s) for s in sets]
        self.state = self.sets[0]

    def compile(self, number):
        """Compiles it again as a program of another name; returns seconds."""
        work = self.work

        def fn(*arguments):
            return work.fn(*arguments)

        fn.__name__ = f"workload{number}"
        self.jit = self.jax.jit(fn, donate_argnums=tuple(range(work.carry)))
        lowered = self.jit.lower(*self.state)
        begin = time.perf_counter()
        self.program = lowered.compile()
        return time.perf_counter() - begin

    def call(self, count, vary=False):
        """Seconds of `count` calls and one wait; and the last result."""
        carry, out = self.work.carry, None
        begin = time.perf_counter()
        for i in range(count):
            arguments = self.sets[i % len(self.sets)] if vary else self.state
            out = self.jit(*arguments)
            if carry:
                self.state = tuple(out[:carry]) + tuple(arguments[carry:])
        self.jax.block_until_ready(out)
        return time.perf_counter() - begin, out


def changed(leaf):
    """Other numbers of the same kind."""
    import numpy as np

    leaf = np.asarray(leaf)
    return np.roll(leaf.ravel(), 1).reshape(leaf.shape) if leaf.size > 4 else leaf + leaf.dtype.type(1)


def timed(sides, quick):
    """Alternating batches: {side: [seconds per call]}."""
    slowest = max(side.call(1)[0] for side in sides.values())
    calls = {name: max(1, min(400, int(0.02 / max(side.call(1)[0], 1e-6)))) for name, side in sides.items()}
    repetitions = 3 if quick else 15 if slowest < 0.1 else 7
    times = {name: [] for name in sides}
    for _ in range(repetitions):
        for name, side in sides.items():
            times[name].append(side.call(calls[name])[0] / calls[name])
    return times


def measure(arguments):
    """Measures one workload, as a JSON line."""
    import jax
    import numpy as np

    events = []
    hold = workload.listen(events)
    name, size = arguments.worker.split(":")
    work = workload.load(arguments, arguments.worker)
    host = jax.tree.map(np.asarray, tuple(work.args))
    work.args = None
    record = {"workload": name, "size": size}
    for side in SIDES:  # initialize both before anything is timed
        x = jax.device_put(np.ones(8, np.float32), jax.devices(side)[0])
        jax.block_until_ready(jax.jit(lambda x: x + 1)(x))
    theirs = Side("cpu", work, [host])
    seconds = [theirs.compile(0)]
    first = theirs.call(1)[1]
    expected = jax.tree.map(np.array, first)
    del first
    if (once := theirs.call(1)[0]) > LIMIT_S and theirs.call(1)[0] > LIMIT_S:
        return {**record, "skipped": f"{once:.1f} s on JAX's CPU backend"}
    events.clear()
    ours = Side("tokamak", work, [host])
    compiles = {"tokamak": [ours.compile(0)], "cpu": seconds}
    report = [e for e in events if e["event"] == "compile"][-1]
    record |= {"launches": report["launches"], "fallbacks": report["fallbacks"], "backend": report["backend"]}
    if report["fallbacks"] and not arguments.fallbacks:
        return record
    got = ours.call(1)[1]
    record["difference"] = worst_difference(got, expected)
    if record["difference"] > allowed(record) and not work.carry and (right := exact.evaluate(work.fn, host)) is not None:
        record["off"] = {"tokamak": exact.distance(got, right), "cpu": exact.distance(expected, right)}
        del right
    del got, expected
    sides = {"tokamak": ours, "cpu": theirs}
    for number in range(1, 1 if arguments.quick else 1 + min(4, int(2 / max(seconds[0], 0.01)))):
        for side in SIDES:
            compiles[side].append(sides[side].compile(number))
    record["compile_s"] = compiles
    record["seconds"] = timed(sides, arguments.quick)
    if not work.carry:
        other = jax.tree.map(changed, host)
        for side in sides.values():
            side.sets.append(jax.tree.map(lambda a, s=side: jax.device_put(a, jax.devices(s.name)[0]), other))
        record["seconds_changed"] = {}
        for side, of in sides.items():
            calls = max(2, min(400, int(0.05 / min(record["seconds"][side]))) // 2 * 2)
            of.call(calls, vary=True)
            record["seconds_changed"][side] = min(of.call(calls, vary=True)[0] / calls for _ in range(3))
        ends = [side.call(2, vary=True)[1] for side in sides.values()]
        record["difference"] = max(record["difference"], worst_difference(*ends))
    del hold
    return record


# ---- all workloads


def one(arguments, which):
    more = ["--quick"] * arguments.quick + ["--fallbacks"] * arguments.fallbacks
    return workload.child(__file__, arguments, "--worker", which, "cpu,tokamak", 300, more)


def said(row):
    return f"{ratio(row):.2f}, compile {ratio(row, 'compile_s'):.2f}" if "seconds" in row else "interpreted"


def main():
    parser = workload.parser(__doc__, "cpu")
    parser.add_argument("--fallbacks", action="store_true", help="time programs that are interpreted in part, too")
    arguments = parser.parse_args()
    rows = workload.run(arguments, __file__, sys.modules[__name__])
    return 0 if rows is None or all(met for _, _, met in summary(rows)) else 1


if __name__ == "__main__":
    sys.exit(main())
