import jax
import jax.numpy as jnp


@jax.jit
def step(key, x):
    of_move, of_choice = jax.random.split(key)
    proposal = x + 0.5 * jax.random.normal(of_move, x.shape)
    accepted = jnp.log(jax.random.uniform(of_choice, x.shape)) < 0.5 * (x**2 - proposal**2)
    return jnp.where(accepted, proposal, x)


key, x = jax.random.key(0), jnp.zeros(128)
means = []
for _ in range(12):
    key, own = jax.random.split(key)
    x = step(own, x)
    means.append(x.mean())
print(f"{sum(means):.4f}")
