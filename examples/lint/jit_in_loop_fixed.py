"""It is jitted once."""

import jax
import jax.numpy as jnp

halve = jax.jit(lambda v: v * 0.5 + 1.0)
x = jnp.linspace(0.0, 1.0, 8)
for _ in range(10):
    x = halve(x)
print(x.sum())
