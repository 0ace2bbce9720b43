"""A Python number takes the type of the array."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def scores(q, k):
    s = (q @ k.T) / float(np.sqrt(q.shape[-1]))
    return jax.nn.softmax(s)


q = jnp.linspace(-1.0, 1.0, 256 * 64).reshape(256, 64).astype(jnp.bfloat16)
print(scores(q, q).astype(jnp.float32).sum())
