import flax.linen as nn
import jax
import jax.numpy as jnp


class Network(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        for channels in (4, 8):
            x = nn.Conv(channels, (3, 3))(x)
            x = nn.BatchNorm(use_running_average=not train)(x)
            x = nn.max_pool(nn.relu(x), (2, 2), (2, 2))
        return nn.Dense(10)(x.reshape(x.shape[0], -1))


network = Network()
x = jnp.linspace(0, 1, 4 * 8 * 8).reshape(4, 8, 8, 1)
variables = network.init(jax.random.key(0), x, train=False)


@jax.jit
def step(variables, x):
    def loss(params):
        logits, new = network.apply({**variables, "params": params}, x, train=True, mutable=["batch_stats"])
        return jnp.mean(jax.nn.logsumexp(logits, -1)), new

    gradient, new = jax.grad(loss, has_aux=True)(variables["params"])
    return {"params": jax.tree.map(lambda p, g: p - 0.1 * g, variables["params"], gradient), **new}


for _ in range(3):
    variables = step(variables, x)
print(f"{variables['params']['Dense_0']['bias'].sum():.5f}")
