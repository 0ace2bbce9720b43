"""CartPole in plain JAX, independent of Tokamak.

    python examples/cartpole.py                       # on JAX's default platform
    JAX_PLATFORMS=tokamak python examples/cartpole.py
    python examples/cartpole.py --json                # for scripts/demo

Two programs: `naive`, a Python loop that calls one jitted step per iteration, and `scan`, all steps in one lax.scan.
Both draw random actions and reset a pole when it falls."""

import argparse
import json
import sys
import time

import jax
import jax.numpy as jnp

GRAVITY, MASS_CART, MASS_POLE, LENGTH, FORCE, TAU = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
TOTAL_MASS, POLE_MOMENT = MASS_CART + MASS_POLE, MASS_POLE * LENGTH
X_LIMIT, THETA_LIMIT = 2.4, 12 * 2 * jnp.pi / 360


def start(key, poles):
    return jax.random.uniform(key, (poles, 4), minval=-0.05, maxval=0.05)


def step(state, key):
    """One step of all poles: the new states, and which poles fell."""
    action_key, start_key = jax.random.split(key)
    x, x_dot, theta, theta_dot = state[:, 0], state[:, 1], state[:, 2], state[:, 3]
    force = jnp.where(jax.random.bernoulli(action_key, shape=x.shape), FORCE, -FORCE)
    cos, sin = jnp.cos(theta), jnp.sin(theta)
    push = (force + POLE_MOMENT * theta_dot**2 * sin) / TOTAL_MASS
    theta_acc = (GRAVITY * sin - cos * push) / (LENGTH * (4.0 / 3.0 - MASS_POLE * cos**2 / TOTAL_MASS))
    x_acc = push - POLE_MOMENT * theta_acc * cos / TOTAL_MASS
    new = jnp.stack([x + TAU * x_dot, x_dot + TAU * x_acc, theta + TAU * theta_dot, theta_dot + TAU * theta_acc], axis=1)
    fell = (jnp.abs(new[:, 0]) > X_LIMIT) | (jnp.abs(new[:, 2]) > THETA_LIMIT)
    return jnp.where(fell[:, None], start(start_key, state.shape[0]), new), fell


jitted_step = jax.jit(step)


def naive(key, poles, steps):
    state, falls = start(key, poles), jnp.zeros((), jnp.int32)
    for step_key in jax.random.split(key, steps):
        state, fell = jitted_step(state, step_key)
        falls = falls + jnp.sum(fell)
    return state, falls


def _scan_body(carry, key):
    state, falls = carry
    state, fell = step(state, key)
    return (state, falls + jnp.sum(fell)), None


@jax.jit
def _scan_from(state, keys):
    (state, falls), _ = jax.lax.scan(_scan_body, (state, jnp.zeros((), jnp.int32)), keys)
    return state, falls


def scan(key, poles, steps):
    return _scan_from(start(key, poles), jax.random.split(key, steps))


PROGRAMS = {"naive": naive, "scan": scan}


def measure(name, poles, steps, repeats, say):
    """Runs a program: time to the first result, time per step of the fastest of `repeats` runs, and the result."""
    program, key = PROGRAMS[name], jax.random.key(0)
    say(f"{name}: first run")
    begin = time.perf_counter()
    state, falls = jax.block_until_ready(program(key, poles, steps))
    first = time.perf_counter() - begin
    best = float("inf")
    for i in range(repeats):
        say(f"{name}: run {i + 1} of {repeats}")
        begin = time.perf_counter()
        jax.block_until_ready(program(key, poles, steps))
        best = min(best, time.perf_counter() - begin)
    return {
        "program": name, "first_s": first, "step_us": best / steps * 1e6,
        "falls": int(falls), "state": [[float(v) for v in row] for row in state],
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--poles", type=int, default=256)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print one JSON object a program")
    args = parser.parse_args()

    def say(text):
        print(f"{jax.default_backend()}: {text}", file=sys.stderr, flush=True)

    for name in PROGRAMS:
        got = measure(name, args.poles, args.steps, args.repeats, say)
        got["platform"] = jax.default_backend()
        if args.json:
            print(json.dumps(got), flush=True)
        else:
            print(f"{name}: first result after {got['first_s']:.2f} s, {got['step_us']:.0f} us a step, {got['falls']} falls")


if __name__ == "__main__":
    main()
