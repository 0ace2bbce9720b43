"""Two sums give the slope."""

import jax
import jax.numpy as jnp


@jax.jit
def slope(x, y):
    x = x - x.mean()
    return jnp.sum(x * y) / jnp.sum(x * x)


x = jnp.linspace(0.0, 1.0, 64)
print(slope(x, 2.0 * x + 1.0))
