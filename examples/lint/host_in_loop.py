"""Each iteration of a scan calls Python."""

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def total(xs):
    def body(sum_so_far, x):
        y = jax.pure_callback(np.tanh, jax.ShapeDtypeStruct(x.shape, x.dtype), x)  # lint.host-in-loop
        return sum_so_far + y, None

    return jax.lax.scan(body, jnp.zeros(8), xs)[0]


print(total(jnp.linspace(0.0, 1.0, 64).reshape(8, 8)).sum())
