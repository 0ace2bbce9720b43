import jax.numpy as jnp
import optax
from flax import nnx


class Network(nnx.Module):
    def __init__(self, rngs):
        self.inner = nnx.Linear(4, 16, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.outer = nnx.Linear(16, 1, rngs=rngs)

    def __call__(self, x):
        return self.outer(self.dropout(nnx.relu(self.inner(x))))


network = Network(nnx.Rngs(0))
optimizer = nnx.Optimizer(network, optax.adam(1e-2), wrt=nnx.Param)


@nnx.jit
def step(network, optimizer, x):
    loss, gradient = nnx.value_and_grad(lambda n: jnp.mean(n(x) ** 2))(network)
    optimizer.update(network, gradient)
    return loss


x = jnp.linspace(-1, 1, 32).reshape(8, 4)
for _ in range(10):
    loss = step(network, optimizer, x)
print(f"{loss:.5f}")
