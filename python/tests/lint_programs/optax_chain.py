import jax
import jax.numpy as jnp
import optax

schedule = optax.warmup_cosine_decay_schedule(0.0, 0.1, 5, 20)
optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))
params = {"w": jnp.ones((128, 128)) * 0.01, "b": jnp.zeros(128)}
state = optimizer.init(params)
x = jnp.linspace(-1, 1, 16 * 128).reshape(16, 128)


def loss_of(params, x):
    return jnp.mean(jnp.tanh(x @ params["w"] + params["b"]) ** 2)


@jax.jit
def step(params, state):
    gradient = jax.grad(loss_of)(params, x)
    updates, state = optimizer.update(gradient, state, params)
    return optax.apply_updates(params, updates), state


for _ in range(12):
    params, state = step(params, state)
print(f"{loss_of(params, x):.5f}")
