"""A transposed array is stored before a product."""

import jax
import jax.numpy as jnp


@jax.jit
def project(x, w):
    return jnp.swapaxes(x, 0, 1) @ w  # lint.stored-transpose


print(project(jnp.linspace(0.0, 1.0, 64 * 32 * 128).reshape(64, 32, 128), jnp.full((128, 128), 0.01)).sum())
