"""A product that is the same in each iteration."""

import jax
import jax.numpy as jnp


@jax.jit
def covariance(samples):
    return samples.T @ samples / samples.shape[0]


samples = jnp.linspace(-1.0, 1.0, 64 * 8).reshape(64, 8)
vectors = []
for k in range(12):
    matrix = covariance(samples)  # lint.loop-invariant
    vectors.append(matrix[k % 8])
print(jnp.stack(vectors).sum())
