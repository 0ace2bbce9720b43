"""Every row is updated once, by a scatter."""

import jax
import jax.numpy as jnp


@jax.jit
def update(x, y):
    return x.at[jnp.arange(512)].add(y)  # lint.scatter-is-dense


print(update(jnp.linspace(0.0, 1.0, 512 * 256).reshape(512, 256), jnp.ones((512, 256))).sum())
