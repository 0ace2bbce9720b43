"""The function of JAX runs on the device."""

import jax
import jax.numpy as jnp


@jax.jit
def total(xs):
    return jax.lax.scan(lambda total, x: (total + jnp.tanh(x), None), jnp.zeros(8), xs)[0]


print(total(jnp.linspace(0.0, 1.0, 64).reshape(8, 8)).sum())
