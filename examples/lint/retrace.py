"""A function that is called with ever other lengths: each one is compiled."""

import jax
import jax.numpy as jnp


@jax.jit  # lint.retrace
def mean(values):
    return jnp.mean(values)


data = jnp.linspace(0.0, 1.0, 64)
print(sum(mean(data[: n + 1]) for n in range(8)))
