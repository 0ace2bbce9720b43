"""A key for each."""

import jax
import jax.numpy as jnp


@jax.jit
def noisy(key, x):
    of_dropout, of_noise = jax.random.split(key)
    kept = jax.random.bernoulli(of_dropout, 0.9, x.shape)
    return jnp.where(kept, x, 0.0) + 0.1 * jax.random.normal(of_noise, x.shape)


print(noisy(jax.random.key(0), jnp.ones(16)).shape)
