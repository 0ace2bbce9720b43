"""The result is padded."""

import jax
import jax.numpy as jnp


@jax.jit
def layer(x, w):
    return jnp.pad(x @ w, ((0, 128), (0, 0)))


print(layer(jnp.ones((128, 128)), jnp.full((128, 128), 0.01)).sum())
