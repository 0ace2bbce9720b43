"""Arithmetic outside of jit in a loop: every operation is a call of its own, and stores its result."""

import jax.numpy as jnp

x = jnp.linspace(0.0, 1.0, 64)
for _ in range(50):
    x = jnp.tanh(x) * 0.9 + jnp.square(x)  # lint.op-by-op
print(x.sum())
