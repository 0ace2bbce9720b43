"""The product reads the dimensions in their order."""

import jax
import jax.numpy as jnp


@jax.jit
def project(x, w):
    return jnp.einsum("bsd,de->sbe", x, w)


print(project(jnp.linspace(0.0, 1.0, 64 * 32 * 128).reshape(64, 32, 128), jnp.full((128, 128), 0.01)).sum())
