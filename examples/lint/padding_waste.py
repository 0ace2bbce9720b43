"""Half of the rows that are multiplied are zeros."""

import jax
import jax.numpy as jnp


@jax.jit
def layer(x, w):
    return jnp.pad(x, ((0, 128), (0, 0))) @ w  # lint.padding-waste


print(layer(jnp.ones((128, 128)), jnp.full((128, 128), 0.01)).sum())
