import jax
import jax.numpy as jnp
import numpy as np


def update(values, state, reward, after):
    return values.at[state].add(0.1 * (reward + 0.9 * values[after] - values[state]))


step = jax.jit(update)
values = jnp.zeros(16)
state = 0
for t in range(30):
    after = (state * 5 + 3) % 16
    values = step(values, state, np.float32(t % 2), after)
    state = after
print(f"{values.sum():.5f}")
