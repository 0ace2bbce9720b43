"""The new state takes the memory of the old one."""

import jax
import jax.numpy as jnp


@jax.jit(donate_argnums=(0,))
def step(state, gradient):
    return {"w": state["w"] - 0.1 * gradient, "m": 0.9 * state["m"] + gradient}


state = {"w": jnp.ones((256, 256)), "m": jnp.zeros((256, 256))}
gradient = jnp.full((256, 256), 0.01)
for _ in range(10):
    state = step(state, gradient)
print(state["w"].sum())
