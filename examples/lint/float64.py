"""With jax_enable_x64, a NumPy number makes float32 arrays float64."""

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)


@jax.jit
def scaled(x):
    return jnp.tanh(x * np.float64(0.1))  # lint.float64


print(scaled(jnp.ones((256, 256), jnp.float32)).mean())
