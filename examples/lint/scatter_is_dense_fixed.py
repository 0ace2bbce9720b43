"""A sum."""

import jax
import jax.numpy as jnp


@jax.jit
def update(x, y):
    return x + y


print(update(jnp.linspace(0.0, 1.0, 512 * 256).reshape(512, 256), jnp.ones((512, 256))).sum())
