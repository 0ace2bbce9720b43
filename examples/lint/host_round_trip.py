"""A training loop that reads its loss in each step: Python waits for the device before it starts the next step."""

import jax
import jax.numpy as jnp


@jax.jit
def step(weights, batch):
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(batch @ w) ** 2))(weights)
    return weights - 0.1 * gradient, loss


weights, batch = jnp.ones((8, 4)), jnp.linspace(-1.0, 1.0, 128).reshape(16, 8)
losses = []
for _ in range(20):
    weights, loss = step(weights, batch)
    losses.append(float(loss))  # lint.host-round-trip
print(losses[-1])
