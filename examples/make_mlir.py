"""Writes the programs examples/*.mlir from plain JAX, for `tokamak run` and `tokamak explain` without JAX or a GPU.

    python examples/make_mlir.py            # writes them next to this file
    python examples/make_mlir.py --check    # compares them with the output of this JAX

    tokamak run examples/cartpole.mlir --repeat 10 --explain_fusion_decisions"""

import argparse
import pathlib
import re
import sys

import jax
import jax.numpy as jnp

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = {}


def program(*arguments):
    """Registers a function with the shapes of its arguments: "f32[8,4]", or "key"."""

    def add(function):
        PROGRAMS[function.__name__] = function, [array(a) for a in arguments]
        return function

    return add


def array(text):
    kinds = {"f32": jnp.float32, "s32": jnp.int32, "pred": jnp.bool_, "u32": jnp.uint32}
    kind, dims = re.fullmatch(r"(\w+)\[([\d,]*)\]", text.replace("key", "u32[2]")).groups()
    return jax.ShapeDtypeStruct([int(d) for d in dims.split(",") if d], kinds[kind])


def drop(key, rate, x):
    keep = jax.random.bernoulli(jax.random.wrap_key_data(key, impl="threefry2x32"), 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), 0)


@program("f32[4,2048]", "f32[2048]", "s32[2048]", "key")
def cartpole(state, returns, episodes, key):
    """CartPole of arXiv 2301.13062, written naively: 1,000 steps of 2,048 poles, random actions, a reset for poles that fell."""

    def step(carry, _):
        state, returns, episodes, key = carry
        action_key, start_key, key = jax.random.split(jax.random.wrap_key_data(key, impl="threefry2x32"), 3)
        x, speed, angle, spin = state
        force = jnp.where(jax.random.bernoulli(action_key, 0.5, x.shape), 10.0, -10.0)
        push = (force + 0.05 * spin**2 * jnp.sin(angle)) / 1.1
        turn = (9.8 * jnp.sin(angle) - jnp.cos(angle) * push) / (0.5 * (4 / 3 - 0.1 * jnp.cos(angle) ** 2 / 1.1))
        pull = push - 0.05 * turn * jnp.cos(angle) / 1.1
        state = jnp.stack([x + 0.02 * speed, speed + 0.02 * pull, angle + 0.02 * spin, spin + 0.02 * turn])
        fell = (jnp.abs(state[0]) > 2.4) | (jnp.abs(state[2]) > 0.2095)
        fresh = jax.random.uniform(start_key, state.shape, minval=-0.05, maxval=0.05)
        state = jnp.where(fell, fresh, state)
        return (state, jnp.where(fell, 0.0, returns + 1), episodes + fell, jax.random.key_data(key)), None

    return jax.lax.scan(step, (state, returns, episodes, key), None, length=1000)[0]


@program("f32[4096,1000]")
def softmax(x):
    """Reads x once, writes once: maximum, sum and division are one kernel."""
    return jax.nn.softmax(x, axis=-1)


@program("f32[2048,768]", "f32[768]", "f32[768]", "key")
def layernorm_dropout(x, scale, shift, key):
    """Layer normalization and dropout with its random numbers."""
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return drop(key, 0.1, (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift)


@program("f32[2,8,256,64]", "f32[2,8,256,64]", "f32[2,8,256,64]", "pred[2,256]")
def attention(q, k, v, is_word):
    """Attention with a padding mask: the scores of all pairs are never stored."""
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 8.0
    scores = jnp.where(is_word[:, None, None, :], scores, -1e9)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1), v)


SHAPES = [f"f32[{(i * 37) % 97 + 3},{(i * 53) % 61 + 5}]" for i in range(12)]


@program(*SHAPES * 4, "f32[]")
def adam(*arrays):
    """Adam over 12 small tensors: parameters, two moments and gradients of each."""
    *arrays, step = arrays
    step = step + 1
    new = []
    for p, m, v, g in zip(*(arrays[i * 12 : (i + 1) * 12] for i in range(4))):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        new.append((p - 1e-3 * (m / (1 - 0.9**step)) / (jnp.sqrt(v / (1 - 0.999**step)) + 1e-8), m, v))
    return new, step


@program("f32[128,128]")
def heat(u):
    """The heat equation, 100 time steps: every element depends on its neighbours of the previous step."""

    def step(_, u):
        inside = u[1:-1, 1:-1]
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        return u.at[1:-1, 1:-1].set(inside + 0.1 * (around - 4 * inside))

    return jax.lax.fori_loop(0, 100, step, u)


@program("f32[4096]", "f32[4096]")
def oscillators(x, v):
    """4,096 independent harmonic oscillators, 1,000 time steps: positions x and velocities v."""

    def step(_, state):
        x, v = state
        v = v - 0.01 * x
        return x + 0.01 * v, v

    return jax.lax.fori_loop(0, 1000, step, (x, v))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    jax.config.update("jax_hlo_source_file_canonicalization_regex", f"{HERE.parent}/")
    other = []
    for name, (function, shapes) in PROGRAMS.items():
        about = " ".join(function.__doc__.split())
        made = jax.jit(function, keep_unused=True).lower(*shapes)
        text = f"// {about}\n// Made by examples/make_mlir.py.\n" + made.as_text(debug_info=True)
        file = HERE / f"{name}.mlir"
        if arguments.check:
            other += [name] * (not file.is_file() or file.read_text() != text)
        else:
            file.write_text(text)
            print(f"{file}: {len(text):,} bytes")
    if other:
        print("other than this JAX would write: " + ", ".join(other))
    return 1 if other else 0


if __name__ == "__main__":
    sys.exit(main())
