#!/usr/bin/env python3
"""Measures the cost of a call from JAX: Tokamak against JAX's own CPU backend.

    bench/run_dispatch.py                        5 alternating runs of dispatch.py on each platform
    bench/run_dispatch.py --script FILE --runs 5 --cores 2,3

Writes dispatch.json and the page dispatch.md in docs/results. A figure is the median over the runs of what dispatch.py
(bench/peers) reports, itself a median; the runs alternate, so that interference affects both equally. Run it on an
idle machine. The last rows are ours: how long Execute takes while its input is still being
computed, and the memory before and after 100,000 calls.
"""
import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import own_python  # noqa: F401
import write_pages
from result_pages import common
from result_pages.dispatch import missed

ROOT = Path(__file__).resolve().parent.parent
# A program of about a second that depends on another: Execute must return at once. Then many calls: memory must not grow.
OWN = """
import json, resource, time, jax, jax.numpy as jnp
x = jnp.ones(256)
def seconds(n):
    f = jax.jit(lambda x: jax.lax.fori_loop(0, n, lambda i, c: jnp.sin(c) + 1.0, x))
    f(x).block_until_ready(); t = time.perf_counter(); f(x).block_until_ready(); return time.perf_counter() - t
n = 1000
while seconds(n) < 0.2: n *= 2
f = jax.jit(lambda x: jax.lax.fori_loop(0, 5 * n, lambda i, c: jnp.sin(c) + 1.0, x))
f(x).block_until_ready()
t = time.perf_counter(); a = f(x); b = f(a); launch = time.perf_counter() - t
b.block_until_ready(); whole = time.perf_counter() - t
g = jax.jit(lambda x: x + 1.0)
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
for _ in range(10000): y = g(x)
y.block_until_ready(); before = resident()
for _ in range(100000): y = g(x)
y.block_until_ready()
print(json.dumps({"launch_ms": launch * 1e3, "whole_s": whole, "before": before, "after": resident()}))
"""


def environment(name):
    return {**os.environ, "JAX_PLATFORMS": name, "PYTHONPATH": str(ROOT / "python")}


def process(arguments, command, name):
    done = subprocess.run(command, env=environment(name), capture_output=True, text=True, timeout=600,
                          preexec_fn=lambda: os.sched_setaffinity(0, arguments.cores))  # fmt: skip
    if done.returncode != 0:
        sys.exit(f"{name}: {' '.join(map(str, command))[:200]}\n{done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def measure(arguments):
    """{variant: {platform: [us of each run]}}"""
    times = {}
    for run in range(arguments.runs):
        for name in ("tokamak", "cpu"):
            command = [sys.executable, arguments.script, "--worker", "jax", "--platform", name]
            for row in process(arguments, command, name):
                times.setdefault(row["variant"], {}).setdefault(name, []).append(row["metric"])
            print(f"run {run + 1} of {arguments.runs}, {name}", file=sys.stderr)
    return times


def written(text):
    return subprocess.run(text.split(), capture_output=True, text=True, cwd=ROOT).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--script", type=Path, default=ROOT / "bench/peers/dispatch.py")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cores", default="", help="bind to these: 2,3 (all that this process may use)")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results")
    arguments = parser.parse_args()
    if not arguments.script.is_file():
        sys.exit(f"{arguments.script} is not there: --script says where dispatch.py is")
    arguments.cores = {int(core) for core in arguments.cores.split(",") if core} or os.sched_getaffinity(0)
    load = os.getloadavg()[0]
    times = measure(arguments)
    own = process(arguments, [sys.executable, "-c", OWN], "tokamak")[-1]
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    jax = subprocess.run([sys.executable, "-c", "import jax; print(jax.__version__)"], capture_output=True, text=True).stdout.strip()
    facts = {"command": common.command("bench/run_dispatch.py"), "runs": arguments.runs, "cpu": model,
             "cores": ",".join(map(str, sorted(arguments.cores))), "system": platform.platform(), "jax": jax, "load": load,
             "commit": written("git rev-parse --short=10 HEAD") or "unknown",
             "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")}  # fmt: skip
    common.save(arguments.out, "dispatch", {"facts": facts, "us": times, "own": own})
    print(write_pages.write("dispatch", arguments.out))
    return 1 if missed(times) else 0


if __name__ == "__main__":
    sys.exit(main())
