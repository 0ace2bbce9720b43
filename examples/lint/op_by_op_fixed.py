"""The body is one function, and the loop one call."""

import jax
import jax.numpy as jnp

x = jnp.linspace(0.0, 1.0, 64)
x = jax.lax.fori_loop(0, 50, lambda _, x: jnp.tanh(x) * 0.9 + jnp.square(x), x)
print(x.sum())
