"""The table is an argument."""

import jax
import jax.numpy as jnp
import numpy as np

table = jnp.asarray(np.linspace(0.0, 1.0, 1024 * 512, dtype=np.float32).reshape(1024, 512))


@jax.jit
def project(x, table):
    return x @ table


print(project(jnp.ones((4, 1024)), table).sum())
