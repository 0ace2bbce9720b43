"""Layers in a Python loop: each is traced, planned and compiled by itself."""

import jax
import jax.numpy as jnp


@jax.jit
def network(x, weights):
    for w in weights:
        x = jnp.tanh(x @ w)  # lint.unrolled-loop
    return x


weights = [jnp.eye(64) * (0.5 + 0.1 * i) for i in range(12)]
print(network(jnp.ones((64, 64)), weights).sum())
