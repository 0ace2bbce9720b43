"""A batch of rows."""

import jax
import jax.numpy as jnp


@jax.jit
def rank(x, w):
    x = jnp.sort(jnp.tanh(x @ w))
    x = jnp.sort(jnp.sin(x @ w))
    return jnp.sort(jnp.exp(-x @ w))


print(rank(jnp.linspace(0.0, 1.0, 256)[None].repeat(4096, 0), jnp.eye(256) * 0.5).mean())
