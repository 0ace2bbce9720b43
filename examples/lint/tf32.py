"""Squared distances by a product whose factors a GPU rounds to TF32: close points lose all digits."""

import jax
import jax.numpy as jnp


@jax.jit
def distances(x, y):
    return jnp.sum(x**2, 1)[:, None] + jnp.sum(y**2, 1) - 2 * x @ y.T  # lint.tf32 on h200


x = jnp.linspace(0.0, 1.0, 256 * 64).reshape(256, 64)
print(distances(x, x).sum())
