import jax
import jax.numpy as jnp


def field(y):
    return jnp.stack([y[1], -jnp.sin(y[0])])


def rk4(y, dt):
    k1 = field(y)
    k2 = field(y + dt / 2 * k1)
    k3 = field(y + dt / 2 * k2)
    k4 = field(y + dt * k3)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


@jax.jit
def integrate(y):
    for _ in range(16):
        y = rk4(y, 0.01)
    return y


y = integrate(jnp.stack([jnp.linspace(0.1, 1.0, 64), jnp.zeros(64)]))
print(f"{y[0, 0]:.4f} {y[0, -1]:.4f}")
