"""A table that a function captures is part of the program."""

import jax
import jax.numpy as jnp
import numpy as np

table = jnp.asarray(np.linspace(0.0, 1.0, 1024 * 512, dtype=np.float32).reshape(1024, 512))


@jax.jit
def project(x):
    return x @ table  # lint.large-constant


print(project(jnp.ones((4, 1024))).sum())
