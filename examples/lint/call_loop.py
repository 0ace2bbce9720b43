"""A simulation step that Python calls again and again with its own result: each call is dispatched."""

import jax
import jax.numpy as jnp


@jax.jit
def step(state):
    return state - 0.01 * jnp.sin(state)


state = jnp.linspace(0.0, 1.0, 16)
for _ in range(200):
    state = step(state)  # lint.call-loop
print(state.sum())
