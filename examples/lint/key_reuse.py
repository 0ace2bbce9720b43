"""Dropout and noise of one key: both are drawn from the same bits."""

import jax
import jax.numpy as jnp


@jax.jit
def noisy(key, x):
    kept = jax.random.bernoulli(key, 0.9, x.shape)
    return jnp.where(kept, x, 0.0) + 0.1 * jax.random.normal(key, x.shape)  # lint.key-reuse


print(noisy(jax.random.key(0), jnp.ones(16)).shape)
