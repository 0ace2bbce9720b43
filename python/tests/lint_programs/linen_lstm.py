import flax.linen as nn
import jax
import jax.numpy as jnp

network = nn.RNN(nn.LSTMCell(16))
x = jnp.linspace(-1, 1, 2 * 12 * 4).reshape(2, 12, 4)
variables = network.init(jax.random.key(0), x)
print(f"{jax.jit(network.apply)(variables, x).sum():.5f}")
