"""A function that is jitted in each iteration: a new function each time, so it is compiled each time."""

import jax
import jax.numpy as jnp

x = jnp.linspace(0.0, 1.0, 8)
for _ in range(10):
    x = jax.jit(lambda v: v * 0.5 + 1.0)(x)  # lint.jit-in-loop
print(x.sum())
