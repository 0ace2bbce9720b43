import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state


class Network(nn.Module):
    @nn.compact
    def __call__(self, x):
        for width in (32, 32):
            x = nn.relu(nn.Dense(width)(x))
        return nn.Dense(1)(x)[..., 0]


network = Network()
x = jnp.linspace(-1, 1, 64)[:, None]
state = train_state.TrainState.create(apply_fn=network.apply, params=network.init(jax.random.key(0), x), tx=optax.sgd(0.05))


@jax.jit
def step(state, x):
    gradient = jax.grad(lambda p: jnp.mean((state.apply_fn(p, x) - x[:, 0] ** 2) ** 2))(state.params)
    return state.apply_gradients(grads=gradient)


for _ in range(10):
    state = step(state, x)
print(f"{jnp.mean((state.apply_fn(state.params, x) - x[:, 0] ** 2) ** 2):.5f}")
