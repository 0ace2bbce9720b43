"""Narrower factors: the kernel computes the function, too."""

import jax
import jax.numpy as jnp


@jax.jit
def layer(x, w):
    return jnp.tanh((x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)).astype(jnp.float32))


print(layer(jnp.eye(1024), jnp.full((1024, 1024), 0.01)).mean())
