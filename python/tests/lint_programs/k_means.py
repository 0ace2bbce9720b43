import jax
import jax.numpy as jnp


@jax.jit
def update(centers, points):
    distances = jnp.sum((points[:, None] - centers) ** 2, -1)
    member = jax.nn.one_hot(jnp.argmin(distances, 1), centers.shape[0])
    return (member.T @ points) / jnp.maximum(member.sum(0)[:, None], 1)


points = jax.random.normal(jax.random.key(0), (128, 2)) + jnp.array([[3.0, 0.0], [-3.0, 0.0]]).repeat(64, 0)
centers = points[:2]
while True:
    moved = update(centers, points)
    if bool(jnp.allclose(moved, centers)):
        break
    centers = moved
print(jnp.sort(jnp.round(centers[:, 0], 1)))
