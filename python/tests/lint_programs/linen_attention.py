import flax.linen as nn
import jax
import jax.numpy as jnp


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        h = nn.LayerNorm(dtype=jnp.bfloat16)(x)
        x = x + nn.MultiHeadDotProductAttention(num_heads=2, dtype=jnp.bfloat16)(h, h)
        return x + nn.Dense(32, dtype=jnp.bfloat16)(nn.gelu(nn.Dense(64, dtype=jnp.bfloat16)(nn.LayerNorm(dtype=jnp.bfloat16)(x))))


class Network(nn.Module):
    @nn.compact
    def __call__(self, x):
        for _ in range(2):
            x = Block()(x)
        return x


x = jnp.linspace(-1, 1, 2 * 16 * 32).reshape(2, 16, 32).astype(jnp.bfloat16)
network = Network()
variables = network.init(jax.random.key(0), x)
print(jax.jit(network.apply)(variables, x).shape)
