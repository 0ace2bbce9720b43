"""The loop is in the program: one call."""

import jax
import jax.numpy as jnp


@jax.jit
def step(state):
    return state - 0.01 * jnp.sin(state)


state = jnp.linspace(0.0, 1.0, 16)
state = jax.lax.fori_loop(0, 200, lambda _, state: step(state), state)
print(state.sum())
