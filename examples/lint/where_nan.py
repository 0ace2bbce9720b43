"""A gradient that is NaN where the logarithm is not used."""

import jax
import jax.numpy as jnp


@jax.jit
def gradient(x):
    return jax.grad(lambda x: jnp.sum(jnp.where(x > 0, jnp.log(x), 0.0)))(x)  # lint.where-nan


print(gradient(jnp.linspace(1.0, 2.0, 64)).sum())
