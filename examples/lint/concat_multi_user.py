"""A concatenation that two sorts read is stored."""

import jax
import jax.numpy as jnp


@jax.jit
def both(x, y):
    c = jnp.concatenate([jnp.sin(x), y])  # lint.concat-multi-user
    return jnp.sort(c, axis=0), jnp.sort(c, axis=1)


x = jnp.linspace(0.0, 1.0, 64 * 256).reshape(64, 256)
print(sum(part.sum() for part in both(x, x)))
