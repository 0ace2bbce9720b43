"""A rewrite rule of one's own: a product of two matrices and a vector is computed from the right.

JAX_PLATFORMS=tokamak python examples/user_rule.py"""
import jax
import jax.numpy as jnp

import tokamak

SHAPES = [(6, 7), (7, 5), (5,)]  # to trace the rule with, and to check it; it then applies to any


@tokamak.rule(lambda a, b, v: (a @ b) @ v, examples=[SHAPES], when=lambda match: match.b.users == 1, tolerance=1e-5)
def from_the_right(a, b, v):
    return a @ (b @ v)  # n^2 instead of n^3 operations


def score(a, b, v):
    return jnp.tanh((a @ b) @ v)


n = 512
a, b, v = (jax.random.normal(key, shape) / n for key, shape in zip(jax.random.split(jax.random.key(0), 3), [(n, n), (n, n), (n,)]))

for decision in tokamak.explain(score, a, b, v).data["decisions"]:
    if decision["rule"] == "user.from_the_right":
        before, after = decision["before_us"], decision["after_us"]
        print(f"{decision['verdict']}: {before:.0f} us become {after:.0f} us ({decision['because']})")
        assert decision["verdict"] == "accepted" and after < before / 2

with_rule = jax.jit(score)(a, b, v)
from_the_right.remove()
without = jax.jit(score)(a, b, v)
print("largest difference:", abs(with_rule - without).max())
assert jnp.allclose(with_rule, without, atol=1e-5)
