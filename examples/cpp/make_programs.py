"""Writes the programs that the C++ examples run, from JAX: cartpole.mlir and mlp.mlirbc next to this file.

    python examples/cpp/make_programs.py        (prints the result of mlp.mlirbc for the example's inputs)"""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

HERE = pathlib.Path(__file__).resolve().parent
POLES, STEPS = 8, 100
GRAVITY, CART, POLE, HALF_LENGTH, FORCE, DT = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02


def step(state, weights):
    """One step of all poles: position, speed, angle, angular speed. The weighted state decides the direction of the push."""
    x, v, angle, spin = state.T
    force = jnp.where(state @ weights > 0, FORCE, -FORCE)
    push = (force + POLE * HALF_LENGTH * spin**2 * jnp.sin(angle)) / (CART + POLE)
    turn = GRAVITY * jnp.sin(angle) - jnp.cos(angle) * push
    turn = turn / (HALF_LENGTH * (4.0 / 3.0 - POLE * jnp.cos(angle) ** 2 / (CART + POLE)))
    pull = push - POLE * HALF_LENGTH * turn * jnp.cos(angle) / (CART + POLE)
    return jnp.stack([x + DT * v, v + DT * pull, angle + DT * spin, spin + DT * turn], axis=1)


def cartpole(state, weights):
    """STEPS steps; the final states, and the number of steps for which each pole stayed upright."""
    def body(_, carry):
        state, stood, standing = carry
        state = step(state, weights)
        standing = standing & (jnp.abs(state[:, 0]) < 2.4) & (jnp.abs(state[:, 2]) < 0.2095)
        return state, stood + standing, standing

    start = state, jnp.zeros(POLES, jnp.int32), jnp.ones(POLES, bool)
    state, stood, _ = jax.lax.fori_loop(0, STEPS, body, start)
    return state, stood


def mlp(x):
    """Two layers with weights as constants of the program, and a softmax."""
    random = np.random.default_rng(7)
    hidden = jnp.tanh(x @ random.normal(0, 0.4, (8, 16)).astype(np.float32) + 0.1)
    return jax.nn.softmax(hidden @ random.normal(0, 0.4, (16, 4)).astype(np.float32))


def main():
    jax.config.update("jax_hlo_source_file_canonicalization_regex", f"{HERE}/")
    f32 = lambda *dims: jax.ShapeDtypeStruct(dims, jnp.float32)
    exported = export.export(jax.jit(cartpole))(f32(POLES, 4), f32(4))
    (HERE / "cartpole.mlir").write_text(exported.mlir_module())
    exported = export.export(jax.jit(mlp))(f32(32, 8))
    (HERE / "mlp.mlirbc").write_bytes(exported.mlir_module_serialized)
    x = np.array([[((row * 8 + i) % 13 - 6) / 8 for i in range(8)] for row in range(32)], np.float32)
    print(np.array2string(np.asarray(mlp(x))[[0, 31]], precision=7, separator=", "))


if __name__ == "__main__":
    main()
