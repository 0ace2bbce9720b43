"""A small function that Python calls for each of many inputs."""

import jax
import jax.numpy as jnp


@jax.jit
def energy(x):
    return jnp.sum(x * x)


inputs = list(jnp.linspace(0.0, 1.0, 64 * 8).reshape(64, 8))
energies = []
for x in inputs:
    energies.append(energy(x))  # lint.dispatch-bound
print(jnp.stack(energies).sum())
