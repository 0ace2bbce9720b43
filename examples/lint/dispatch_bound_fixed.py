"""All inputs in one call."""

import jax
import jax.numpy as jnp


@jax.jit
def energy(x):
    return jnp.sum(x * x)


inputs = jnp.linspace(0.0, 1.0, 64 * 8).reshape(64, 8)
energies = jax.vmap(energy)(inputs)
print(energies.sum())
