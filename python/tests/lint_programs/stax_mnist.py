import jax
import jax.numpy as jnp
from jax.example_libraries import optimizers, stax

init, apply = stax.serial(stax.Dense(32), stax.Relu, stax.Dense(10), stax.LogSoftmax)
_, params = init(jax.random.key(0), (-1, 64))
opt_init, opt_update, get_params = optimizers.momentum(0.01, 0.9)
state = opt_init(params)
x, y = jnp.linspace(0, 1, 16 * 64).reshape(16, 64), jnp.arange(16) % 10


@jax.jit
def step(i, state):
    gradient = jax.grad(lambda p: -jnp.mean(apply(p, x)[jnp.arange(16), y]))(get_params(state))
    return opt_update(i, gradient, state)


for i in range(10):
    state = step(i, state)
print(f"{-jnp.mean(apply(get_params(state), x)[jnp.arange(16), y]):.5f}")
