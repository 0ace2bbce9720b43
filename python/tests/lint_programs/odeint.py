import jax
import jax.numpy as jnp
from jax.experimental.ode import odeint

times = jnp.linspace(0.0, 1.0, 5)
path = jax.jit(lambda y0: odeint(lambda y, t: jnp.stack([y[1], -jnp.sin(y[0])]), y0, times))(jnp.array([1.0, 0.0]))
print(f"{path[-1, 0]:.3f}")
