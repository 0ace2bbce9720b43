"""Attention scores in bfloat16 that a NumPy number makes float32: np.sqrt gives a float64 scalar, which is strongly typed."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def scores(q, k):
    s = (q @ k.T) / np.sqrt(q.shape[-1])  # lint.promotion
    return jax.nn.softmax(s)


q = jnp.linspace(-1.0, 1.0, 256 * 64).reshape(256, 64).astype(jnp.bfloat16)
print(scores(q, q).astype(jnp.float32).sum())
