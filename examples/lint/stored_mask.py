"""A causal mask that every iteration of a loop reads is stored."""

import jax
import jax.numpy as jnp


@jax.jit
def settle(x):
    mask = jnp.tril(jnp.ones((1024, 1024), bool))  # lint.stored-mask on h200
    return jax.lax.scan(lambda x, _: (jnp.sort(jnp.where(mask, x, -1.0), axis=1), None), x, None, length=4)[0]


print(settle(jnp.linspace(0.0, 1.0, 1024 * 1024).reshape(1024, 1024)).sum())
