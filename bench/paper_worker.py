"""One process of bench/paper: measures programs on one or several sides, repetitions interleaved, and prints a JSON line for each.

The task is a JSON object on standard input:
  workloads   where workloads.py is
  sides       [{name, platform, options}]: the systems to measure; options are those of jax.jit's compiler
  programs    ["cartpole_scan:2048", ...]
  repetitions, repetition_s   the number of repetitions per side, and their duration
  profile     also the device time of one call, at the end
  first       only the first call: trace, lower, compile, run, in a fresh process
  eager       CartPole's step without jit, this many steps
A line {"begin": ...} precedes everything that may take long, so that the parent knows what was running when it stops this process.
"""
import contextlib
import glob
import json
import os
import re
import statistics
import sys
import tempfile
import time

from differences import worst_difference

STEPS = 1000  # per CartPole program; bench/paper reports milliseconds for this many
SILENT = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "while", "call", "conditional", "after-all", "opt-barrier")


EVENTS = []  # the library's reports about compilations


def say(**record):
    print(json.dumps(record), flush=True)


def steps_of(name):
    """The number of steps that one call of the program makes."""
    unrolled = re.search(r"unrolled(\d+)", name)
    return int(unrolled[1]) if unrolled else STEPS


def count_instructions(text):
    """(outside of loops, inside of them): instructions of XLA's compiled program that run as separate kernels."""
    bodies, current, entry = {}, None, None
    for line in text.splitlines():
        head = re.match(r"^(ENTRY )?%?([\w.\-]+) \(.*\{\s*$", line)
        if head:
            current = bodies.setdefault(head[2], [])
            entry = head[2] if head[1] else entry
        elif line.startswith("}"):
            current = None
        elif current is not None and " = " in line:
            current.append(line)

    def walk(name, depth):
        outside = inside = 0
        for line in bodies.get(name, []) if depth < 5 else []:
            op = re.search(r" = (?:\(.*?\)|\S+) ([a-z][\w\-]*)\(", line)
            op = op[1] if op else "?"
            if op == "while":
                inside += sum(sum(walk(c, depth + 1)) for c in re.findall(r"(?:body|condition)=%?([\w.\-]+)", line))
            elif op in ("call", "conditional"):
                for called in re.findall(r"(?:to_apply|calls|true_computation|false_computation)=%?([\w.\-]+)", line):
                    more = walk(called, depth + 1)
                    outside, inside = outside + more[0], inside + more[1]
            elif op not in SILENT:
                outside += 1
        return outside, inside

    return walk(entry, 0) if entry else None


def masks_scores(text):
    """Whether a fused computation of XLA's compiled program multiplies and selects."""
    bodies = re.split(r"^(?:ENTRY )?%?[\w.\-]+ \(.*\{\s*$", text, flags=re.M)[1:]
    return any(" dot(" in body and " select(" in body for body in bodies if " fusion(" not in body)


def names_both(instrs):
    """Whether a kernel of Tokamak multiplies and selects, by the names of its instructions."""
    return any(re.match(r"dot", name) for name in instrs) and any(re.match(r"select", name) for name in instrs)


def device_events(call):
    """The device's activity in one call, by JAX's profiler: kernels, copies, milliseconds; or why it is unknown."""
    import jax

    try:
        with tempfile.TemporaryDirectory() as folder:
            with jax.profiler.trace(folder):
                call()
            files = glob.glob(folder + "/**/*.xplane.pb", recursive=True)
            if not files:
                return {"device_why": "the profiler wrote nothing"}
            kernels = copies = 0
            busy = 0.0
            for plane in jax.profiler.ProfileData.from_file(files[0]).planes:
                if not plane.name.startswith("/device:GPU"):
                    continue
                for line in plane.lines:
                    if not line.name.startswith("Stream"):
                        continue
                    for event in line.events:
                        moved = event.name.lower().startswith(("memcpy", "memset"))
                        kernels, copies = kernels + (not moved), copies + moved
                        busy += event.duration_ns
            if not kernels + copies:
                return {"device_why": "the profiler saw no event of a device"}
            return {"device_ms": busy / 1e6, "kernels": kernels, "copies": copies}
    except Exception as error:  # only this figure is lost, not the run
        return {"device_why": f"the profiler: {str(error)[:120]}"}


@contextlib.contextmanager
def configured(flags):
    """Sets the JAX flags that a workload requires while it is traced, lowered and called."""
    import jax

    before = {name: getattr(jax.config, name) for name in flags if hasattr(jax.config, name)}
    try:
        for name in before:
            jax.config.update(name, flags[name])
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)


class Side:
    """A program on one side."""

    def __init__(self, task, label, work):
        import jax

        self.task, self.label, self.work = task, label, work
        self.device = jax.devices(task["platform"])[0]
        self.times, self.calls = [], 1
        self.record = {"program": label, "side": task["name"], "steps": steps_of(label) if not work.calls else 1}

    def prepare(self):
        import jax

        work = self.work
        self.args = tuple(jax.tree.map(lambda x: jax.device_put(x, self.device), a) for a in work.args)
        jax.block_until_ready(self.args)
        donated = tuple(range(work.carry)) if work.calls else ()
        options = self.task.get("options") or {}
        begin = time.perf_counter()
        fn = work.peer if work.peer and self.task["platform"] == "cuda" else work.fn
        lowered = jax.jit(fn, donate_argnums=donated, compiler_options=options or None).lower(*self.args)
        traced = time.perf_counter()
        EVENTS.clear()
        self.fn = lowered.compile()
        self.record |= {"trace_s": traced - begin, "compile_s": time.perf_counter() - traced}
        if self.task["platform"] == "tokamak":
            self.record["compiled_kernels"] = next((e["launches"] for e in EVENTS[::-1] if e["event"] == "compile"), None)
            self.ask_tokamak(lowered, options)
        else:
            text = self.fn.as_text()
            self.record["instructions"] = count_instructions(text)
            self.record["masked_together"] = masks_scores(text)
            self.record["hlo"] = text if len(text) < 4_000_000 else None
        begin = time.perf_counter()
        self.out = jax.block_until_ready(self.call(1))
        self.record["first_run_s"] = time.perf_counter() - begin

    def ask_tokamak(self, lowered, options):
        """The kernels that explain reports: on a CPU there is no profiler of launches."""
        try:
            from tokamak._explain import Explanation

            target = "h200" if os.environ.get("TOKAMAK_DEVICE") == "cuda" else "host"
            report = Explanation(lowered.as_text().encode(), "program.mlir", {**options, "target": target, "compare": "false"}).data
            steps = report["kernels"]
            self.record["masked_together"] = any(names_both(k["instrs"]) for k in steps)
            self.record |= {"launches": sum(k["calls"] or 1 for k in steps), "kinds": len(steps), "host_steps": report["host_steps"],
                            "bytes": sum((k["reads_bytes"] + k["writes_bytes"]) * (k["calls"] or 1) for k in steps),
                            "temporary_bytes": report["temporary_bytes"],
                            "loops": [[d["rule"], d["verdict"], d["because"], d["before_us"], d["after_us"]] for d in report["decisions"]
                                      if d["rule"] in ("loop.fuse", "loop.hoist-uniform", "loop.chunks", "loop.persistent")]}  # fmt: skip
        except Exception as error:
            self.record["explain_why"] = str(error)[:200]

    def call(self, count):
        import jax

        args, carry = self.args, self.work.carry if self.work.calls else 0
        out = None
        for _ in range(count):
            out = self.fn(*args)
            if carry:
                args = tuple(out[:carry]) + tuple(args[carry:])
        self.args = args
        return jax.block_until_ready(out)

    def turn(self, seconds):
        begin = time.perf_counter()
        self.call(self.calls)
        took = (time.perf_counter() - begin) / self.calls
        self.times.append(took)
        self.calls = max(1, min(1000, int(seconds / took)))

    def result(self):
        times = self.times[1:] or self.times  # the first repetition warms up
        scale = 1e3 * STEPS / self.record["steps"]
        best = min(times)
        return self.record | {"ms": best * scale, "ms_median": statistics.median(times) * scale, "ms_most": max(times) * scale,
                              "repetitions": len(times), "call_ms": best * 1e3}  # fmt: skip


def measure(task, workloads, label, cpu):
    """All sides of one program; returns those that can be profiled later."""
    import jax

    name, size = label.split(":")
    with jax.default_device(cpu):
        work = workloads.workload(name, size)
    if work.calls:
        work.args = jax.tree.map(lambda x: jax.device_get(x), work.args)  # each side donates its own copy
    sides = []
    with configured(work.config):
        for one in task["sides"]:
            say(begin=label, side=one["name"])
            side = Side(one, label, work)
            try:
                side.prepare()
                sides.append(side)
            except Exception as error:  # the other sides still run
                say(program=label, side=one["name"], error=f"{type(error).__name__}: {str(error)[:300]}")
        for _ in range(task["repetitions"] + 1):
            for side in sides:
                side.turn(task["repetition_s"])
        for side in sides:
            record = side.result()
            if side is not sides[0] and not work.calls:
                record |= {"difference": worst_difference(side.out, sides[0].out), "against": sides[0].task["name"]}
            say(**record)
    for side in sides:
        side.out = None
    return sides


def first(task, workloads, label, cpu):
    """The user's waiting time at the first call, by phase."""
    import jax

    name, size = label.split(":")
    one = task["sides"][0]
    begin = time.perf_counter()
    device = jax.devices(one["platform"])[0]
    opened = time.perf_counter() - begin
    with jax.default_device(cpu):
        work = workloads.workload(name, size)
    args = [jax.tree.map(lambda x: jax.device_put(jax.device_get(x), device), a) for a in work.args]
    jax.block_until_ready(args)
    say(begin=label, side=one["name"])
    parts = [time.perf_counter()]
    traced = jax.jit(work.fn).trace(*args)
    parts.append(time.perf_counter())
    lowered = traced.lower()
    parts.append(time.perf_counter())
    compiled = lowered.compile()
    parts.append(time.perf_counter())
    jax.block_until_ready(compiled(*args))
    parts.append(time.perf_counter())
    spent = [b - a for a, b in zip(parts, parts[1:])]
    say(program=label, side=one["name"], first=dict(zip(("trace", "lower", "compile", "run"), spent)), open_s=opened)


def eager(task, workloads, cpu):
    """CartPole's step op by op, without jit."""
    import jax

    one = task["sides"][0]
    device = jax.devices(one["platform"])[0]
    with jax.default_device(cpu):
        work = workloads.workload("cartpole_naive", "2048")
    args = tuple(jax.tree.map(lambda x: jax.device_put(x, device), a) for a in work.args)
    say(begin="eager", side=one["name"])
    with jax.disable_jit():
        begin = time.perf_counter()
        args = tuple(jax.block_until_ready(work.fn(*args)))
        once = time.perf_counter() - begin
        begin = time.perf_counter()
        for _ in range(task["eager"]):
            args = tuple(work.fn(*args))
        jax.block_until_ready(args)
        took = (time.perf_counter() - begin) / task["eager"]
    say(program="eager:2048", side=one["name"], steps=1, ms=took * 1e3 * STEPS, first_s=once)


def main():
    task = json.load(sys.stdin)
    sys.path.insert(0, os.path.dirname(os.path.abspath(task["workloads"])))
    import jax
    import numpy as np
    import workload
    import workloads

    cpu = jax.devices("cpu")[0]
    say(jax=jax.__version__, devices={s["platform"]: jax.devices(s["platform"])[0].device_kind for s in task["sides"]})
    for side in task["sides"] if not task.get("first") else []:  # one-time initialization of a platform is not compile time
        x = jax.device_put(np.ones(8, np.float32), jax.devices(side["platform"])[0])
        jax.block_until_ready(jax.jit(lambda x: x + 1)(x))
    hold = workload.listen(EVENTS) if any(s["platform"] == "tokamak" for s in task["sides"]) else None
    kept = []
    for label in task["programs"]:
        try:
            if task.get("first"):
                first(task, workloads, label, cpu)
            else:
                kept += measure(task, workloads, label, cpu)
        except Exception as error:
            for side in task["sides"]:
                say(program=label, side=side["name"], error=f"{type(error).__name__}: {str(error)[:300]}")
        if not task.get("profile"):
            kept = []
    if task.get("eager"):
        try:
            eager(task, workloads, cpu)
        except Exception as error:
            say(program="eager:2048", side=task["sides"][0]["name"], error=f"{type(error).__name__}: {str(error)[:300]}")
    for side in kept:  # last: a profiler may slow down later measurements
        calls = 20 if side.work.calls else 5
        say(begin=side.label, side=side.task["name"], profile=True)
        with configured(side.work.config):
            side.call(2)  # restores clocks and caches to their state during timing
            report = device_events(lambda: side.call(calls))
        per = STEPS / (side.record["steps"] * calls)
        if "device_ms" in report:
            report = {"device_ms": report["device_ms"] * per, "device_kernels": report["kernels"] * per / STEPS, "device_copies": report["copies"] * per / STEPS}
        say(program=side.label, side=side.task["name"], profile=report)
        side.fn = side.args = None
    del hold
    return 0


if __name__ == "__main__":
    sys.exit(main())
