"""Stands for the JAX program of a reader in commands of the documents: a jitted training step, called three times."""
import jax
import jax.numpy as jnp


@jax.jit
def step(weights, x, y):
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(weights)
    return weights - 0.1 * gradient, loss


weights, x, y = jnp.zeros((8, 4)), jnp.ones((16, 8)), jnp.ones((16, 4))
for _ in range(3):
    weights, loss = step(weights, x, y)
print(f"loss {loss:.3f}")
