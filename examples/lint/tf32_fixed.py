"""The product keeps all bits of its factors."""

import jax
import jax.numpy as jnp


@jax.jit
def distances(x, y):
    return jnp.sum(x**2, 1)[:, None] + jnp.sum(y**2, 1) - 2 * jnp.dot(x, y.T, precision="highest")


x = jnp.linspace(0.0, 1.0, 256 * 64).reshape(256, 64)
print(distances(x, x).sum())
