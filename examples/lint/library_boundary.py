"""On a GPU a library stores a product for one operation."""

import jax
import jax.numpy as jnp


@jax.jit
def layer(x, w):
    return jnp.tanh(x @ w)  # lint.library-boundary on h200


print(layer(jnp.eye(1024), jnp.full((1024, 1024), 0.01)).mean())
