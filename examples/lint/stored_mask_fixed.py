"""Indices are compared where the mask is used."""

import jax
import jax.numpy as jnp


@jax.jit
def settle(x):
    def body(x, _):
        i = jnp.arange(1024)
        return jnp.sort(jnp.where(i[:, None] >= i, x, -1.0), axis=1), None

    return jax.lax.scan(body, x, None, length=4)[0]


print(settle(jnp.linspace(0.0, 1.0, 1024 * 1024).reshape(1024, 1024)).sum())
