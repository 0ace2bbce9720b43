import jax
import jax.numpy as jnp
import optax

key = jax.random.key(0)
of_x, of_w = jax.random.split(key)
x = jax.random.normal(of_x, (64, 8))
y = x @ jax.random.normal(of_w, (8,))
optimizer = optax.adam(1e-1)
params = jnp.zeros(8)
state = optimizer.init(params)


@jax.jit
def step(params, state, x, y):
    loss, gradient = jax.value_and_grad(lambda p: jnp.mean((x @ p - y) ** 2))(params)
    updates, state = optimizer.update(gradient, state)
    return optax.apply_updates(params, updates), state, loss


for i in range(20):
    params, state, loss = step(params, state, x, y)
    if i % 5 == 0:
        print(i, f"{loss:.4f}")
