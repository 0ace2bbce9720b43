"""Ctrl-C interrupts every wait of a user, and dispatch does not wait for a loop whose earlier runs were short."""

import signal
import subprocess
import sys
import threading
import time

import pytest
from conftest import environment, output

# Loops with a data-dependent trip count: one with independent iterations along the array (one kernel on CPUs), and one with a
# matrix product of the whole array (steps). Earlier runs are short; ITERATIONS take minutes. After the wait the process exits.
PROGRAM = """
import os, sys, time
import jax, jax.numpy as jnp, numpy as np

ITERATIONS = 2**31 - 1
steps = {
    "kernel": lambda c: jnp.sin(c) + 0.001,
    "steps": lambda c: jnp.tanh(c.reshape(32, 32) @ c.reshape(32, 32)).reshape(1024) * 0.9,
    "static": lambda c: jnp.sin(c) + 0.001,
}
LOOP = "%(loop)s"

@jax.jit
def f(n, x):
    if LOOP == "static":
        return jax.lax.fori_loop(0, ITERATIONS, lambda i, c: steps[LOOP](c), x)
    return jax.lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, steps[LOOP](c[1])), (0, x))[1]

x = jnp.ones(1024)
if LOOP != "static":
    for _ in range(30):
        f(3, x).block_until_ready()
jax.jit(lambda a: a[0])(x).block_until_ready()

def go():
    print("go", flush=True)

try:
    %(wait)s
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""

WAITS = {
    "block_until_ready": "y = f(ITERATIONS, x); go(); y.block_until_ready()",
    "jax.block_until_ready": "y = f(ITERATIONS, x); go(); jax.block_until_ready([x, y])",
    "np.asarray": "y = f(ITERATIONS, x); go(); np.asarray(y)",
    "float": "y = f(ITERATIONS, x)[0]; go(); float(y)",
    "print": "y = f(ITERATIONS, x); go(); print(y)",
    "device_get": "y = f(ITERATIONS, x); go(); jax.device_get(y)",
    "dispatch": "go(); y = f(ITERATIONS, x); z = f(ITERATIONS, y); time.sleep(60); y.block_until_ready()",
}


def hear_interrupts():
    """A shell that runs tests in the background makes them ignore SIGINT, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def interrupt(wait, loop="kernel", **changes):
    """Interrupts one wait. Returns how long the interrupt took, and how long the process then took to exit."""
    code = PROGRAM % {"loop": loop, "wait": WAITS[wait]}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment(**changes), cwd="/", text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=hear_interrupts)  # fmt: skip
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    try:
        assert process.stdout.readline() == "go\n", process.stderr.read()
        time.sleep(0.5)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        said = process.stdout.readline()
        interrupted = time.monotonic() - begin
        _, err = process.communicate()
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()
    assert (said, process.returncode, err) == ("interrupted\n", 0, ""), (said, process.returncode, err)
    return interrupted, time.monotonic() - begin


def nightly(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize("wait", ["block_until_ready", "np.asarray", "dispatch", *map(nightly, WAITS)])
def test_interrupt(wait):
    interrupted, ended = interrupt(wait)
    assert interrupted < 1.5 and ended < 8, (interrupted, ended)


@pytest.mark.parametrize("loop, device, wait", [
    ("steps", None, "np.asarray"), ("kernel", "interp", "np.asarray"), ("kernel", "sim-cuda", "np.asarray"),
    nightly("static", None, "np.asarray"), nightly("steps", "sim-cuda", "np.asarray"), nightly("static", "sim-cuda", "np.asarray"),
    nightly("kernel", "interp", "block_until_ready"), nightly("kernel", "sim-cuda", "block_until_ready"),
])  # fmt: skip
def test_interrupt_on(loop, device, wait):
    interrupted, ended = interrupt(wait, loop, TOKAMAK_DEVICE=device)
    assert interrupted < 1.5 and ended < 8, (interrupted, ended)


@pytest.mark.parametrize("device", [None, "interp", "sim-cuda"])
def test_dispatch_does_not_wait_for_a_loop_that_was_short(device):
    code = """
import time, jax, jax.numpy as jnp
f = jax.jit(lambda n, x: jax.lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, x))[1])
g = jax.jit(lambda flag, x: jax.lax.cond(flag, lambda x: jax.lax.fori_loop(0, 100_000, lambda i, c: jnp.sin(c), x), lambda x: x + 1, x))
x = jnp.ones(100)
for _ in range(50):
    f(3, x).block_until_ready()
    g(False, x).block_until_ready()
for long in (lambda: f(100_000, x), lambda: g(True, x)):
    begin = time.perf_counter()
    y = long()
    print(time.perf_counter() - begin < 0.05, y.is_ready())
"""
    assert output(code, TOKAMAK_DEVICE=device) == "True False\nTrue False\n"
