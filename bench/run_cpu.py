#!/usr/bin/env python3
"""Measures the CPU backend against JAX's: run time and compile time of the micro workloads (memory: bench/run_memory.py).

    bench/run_cpu.py                      every size that takes less than a second on JAX's CPU backend
    bench/run_cpu.py --quick              the first size of each workload, fewer repetitions
    bench/run_cpu.py --only 'softmax:*,adam:small200'

Writes docs/results/cpu.md and cpu.json (--name: another name). One process per workload loads both platforms and calls them
alternately, a batch of calls each; a figure is the best batch, its spread the median over it. Results are compared at every
size. Both are also timed with inputs that change from call to call. Programs that Tokamak interprets in part are listed separately.
Run it on an idle machine.
"""
import math
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import exact
import workload

SIDES = ("tokamak", "cpu")
# Bars: ratios of time to JAX's.
MEAN_BAR, EACH_BAR, COMPILE_BAR = 2.5, 0.95, 0.5
BARS = {"transpose": 8.0, "dropout": 3.0, "layernorm_bwd": 3.0, "nbody": 3.0, "ew_chain_transc": 3.0, "sort": 6.0, "cumsum": 6.0,
        "maxpool": 2.0, "embedding_grad": 2.0, "attn_fwd": 3.0, "matmul_f32": 1.0, "matmul_bias_gelu": 1.2, "resnet_block_fwd": 1.0}  # fmt: skip
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


def worst_difference(ours, theirs):
    """The largest difference, relative to the number and the size of its array; for integers the fraction that differs."""
    import jax
    import numpy as np

    worst = 0.0
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            return math.inf
        if a.dtype.kind in "biu":
            worst = max(worst, float(np.mean(a != b)) if a.size else 0.0)
            continue
        for x, y in zip(np.array_split(a.ravel(), max(1, a.size >> 22)), np.array_split(b.ravel(), max(1, a.size >> 22))):
            x, y = x.astype(np.float64), y.astype(np.float64)
            same = (x == y) | (np.isnan(x) & np.isnan(y))
            finite = np.isfinite(x) & np.isfinite(y)
            if not np.all(same | finite):
                return math.inf
            size = math.sqrt(float(np.mean(np.square(y[finite])))) if finite.any() else 0.0
            off = np.abs(x - y)[finite & ~same]
            if off.size:
                worst = max(worst, float(np.max(off / (np.abs(y)[finite & ~same] + size))))
    return worst


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


def ratio(row, key="seconds"):
    ours, theirs = row[key]["tokamak"], row[key]["cpu"]
    return min(theirs) / min(ours) if isinstance(ours, list) else theirs / ours


def summary(rows):
    """Names of the bars and whether each is met."""
    done = [row for row in rows if "seconds" in row and not row["fallbacks"]]
    kinds = {}  # every workload counts once, whatever its number of sizes
    for row in done:
        kinds.setdefault(row["workload"], []).append(ratio(row))
    overall = workload.mean(workload.mean(of) for of in kinds.values())
    slow = [f"{row['workload']} {row['size']} {ratio(row):.2f}" for row in done if ratio(row) < EACH_BAR]
    lines = [(f"geometric mean over {len(done)} programs of {len(kinds)} workloads: {workload.mean(map(ratio, done)):.2f} "
              f"(each workload once: {overall:.2f})", f">= {MEAN_BAR}", workload.mean(map(ratio, done)) >= MEAN_BAR),
             ("slower than JAX: " + (", ".join(slow) or "none"), f"none under {EACH_BAR}", not slow)]  # fmt: skip
    for name, bar in BARS.items():
        if name in kinds:
            lines.append((f"{name}: {min(kinds[name]):.2f} to {max(kinds[name]):.2f}", f">= {bar}", min(kinds[name]) >= bar))
    compiled = workload.mean(1 / ratio(row, "compile_s") for row in done)
    lines.append((f"compilation, geometric mean: {compiled:.2f} of JAX's time", f"<= {COMPILE_BAR}", compiled <= COMPILE_BAR))
    wrong = [f"{row['workload']} {row['size']}{off(row)}" for row in done if row["difference"] > allowed(row)]
    lines.append(("results that differ: " + (", ".join(wrong) or "none"), "none", not wrong))
    return lines


def off(row):
    """The distance of both sides from the f64 result."""
    return f" (off by {row['off']['tokamak']:.1e} of what f64 gives, JAX by {row['off']['cpu']:.1e})" if "off" in row else ""


def allowed(row):
    """Whether the difference is within the rounding of bf16 results or long sums."""
    narrow = "bf16" in row["workload"] or row["workload"].startswith(("attn", "masked", "matmul_b", "resnet", "transpose_bshd"))
    return 2e-2 if narrow else 1e-3


def page(facts, rows):
    lines = [f"`{facts['command']}` measured this.", "", "# The CPU backend against JAX's own", "",
             f"{facts['cpu']}, {facts['cores']} cores, {facts['memory']} GiB; {facts['system']}; JAX {facts['jax']}; commit {facts['commit']}; "
             f"{facts['date']}; load of the machine {facts['load']:.1f}.",
             "Milliseconds a call, the best of repetitions in turn; in brackets the median round over the best. Changed: the ratio when "
             "inputs change from call to call. Compilation: the best of several, without a cache.", "",
             "| what | bar | met |", "|---|---|---|"]  # fmt: skip
    lines += [f"| {text} | {bar} | {'yes' if met else 'no'} |" for text, bar, met in summary(rows)]
    lines += ["", "| program | Tokamak | JAX | ratio | changed | launches | compile, Tokamak | JAX | difference |",
              "|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for row in sorted((row for row in rows if "seconds" in row and not row["fallbacks"]), key=ratio):
        ms = {s: f"{min(t) * 1e3:.3f} ({statistics.median(t) / min(t):.2f})" for s, t in row["seconds"].items()}
        other = f"{ratio(row, 'seconds_changed'):.2f}" if "seconds_changed" in row else ""
        compiles = [f"{min(row['compile_s'][s]) * 1e3:.1f}" for s in SIDES]
        lines.append(f"| {row['workload']} {row['size']} | {ms['tokamak']} | {ms['cpu']} | {ratio(row):.2f} | {other} | {row['launches']} "
                     f"| {compiles[0]} | {compiles[1]} | {row['difference']:.1e} |")  # fmt: skip
    others = [row for row in rows if "seconds" not in row or row["fallbacks"]]
    if others:
        lines += ["", "Not counted:", "", "| program | why |", "|---|---|"]
    for row in others:
        why = row.get("error") or row.get("skipped") or "interpreted: " + "; ".join(sorted(set(row.get("fallbacks", ["?"]))))[:200]
        lines.append(f"| {row['workload']} {row['size']} | {why.replace('|', '/')} |")
    return "\n".join(lines) + "\n"


def main():
    parser = workload.parser(__doc__, "cpu")
    parser.add_argument("--fallbacks", action="store_true", help="time programs that are interpreted in part, too")
    arguments = parser.parse_args()
    rows = workload.run(arguments, __file__, sys.modules[__name__])
    return 0 if rows is None or all(met for _, _, met in summary(rows)) else 1


if __name__ == "__main__":
    sys.exit(main())
