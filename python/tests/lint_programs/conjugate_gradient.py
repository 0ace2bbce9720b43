import jax
import jax.numpy as jnp
from jax.scipy.sparse.linalg import cg

a = jnp.eye(32) * 4 + 0.1 * jnp.ones((32, 32))
b = jnp.linspace(0, 1, 32)
x, _ = jax.jit(lambda a, b: cg(lambda v: a @ v, b))(a, b)
print(f"{jnp.abs(a @ x - b).max() < 1e-4}")
