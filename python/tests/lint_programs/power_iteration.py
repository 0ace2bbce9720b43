import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
a = jnp.asarray(rng.normal(size=(64, 64)).astype(np.float32))
a = a @ a.T


@jax.jit
def iterate(v):
    w = a @ v
    return w / jnp.linalg.norm(w)


v = jnp.ones(64) / np.sqrt(64)
history = []
for i in range(10):
    v = iterate(v)
    history.append(float(v @ a @ v))
print(f"{history[-1]:.2f}")
