"""The rules of `tokamak lint` on programs as JAX lowers them: each finds its line, and leaves the better program alone."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tokamak._explain import Explanation


def lints(f, *args, target="h200", platform=None):
    """The findings of a function, without the rule about dispatch. `platform`: whose lowerings of random numbers."""
    with jax.default_device(jax.devices(platform)[0]) if platform else jax.default_device(None):
        program = jax.jit(f).lower(*args).as_text(debug_info=True)
    options = {"target": target, "lint_ignore": "dispatch-bound,small-batch"}
    return Explanation(program.encode(), "f", options).lints


def found(rule, f, *args, **how):
    """(severity, text of the line) of the findings of a rule."""
    return [(lint["severity"], [line["line"] - f.__code__.co_firstlineno for line in lint["lines"]])
            for lint in lints(f, *args, **how) if lint["rule"] == "lint." + rule]  # fmt: skip


f32 = functools.partial(jax.ShapeDtypeStruct, dtype=jnp.float32)
bf16 = functools.partial(jax.ShapeDtypeStruct, dtype=jnp.bfloat16)
i32 = functools.partial(jax.ShapeDtypeStruct, dtype=jnp.int32)
TABLE = np.random.default_rng(0).normal(size=(512, 640)).astype(np.float32)
MANY = (f32((4096,)),)


def append_by_moving(history, xs):
    def body(c, x):
        c = jnp.concatenate([c[1:], x[None]])
        return c, jnp.sum(c[0])
    return jax.lax.scan(body, history, xs)  # fmt: skip


def append_in_place(history, xs):
    def body(c, x):
        i, c = c
        return (i + 1, c.at[i % 512].set(x)), jnp.sum(x)
    return jax.lax.scan(body, (0, history), xs)  # fmt: skip


def callback_in_loop(x):
    def body(i, c):
        jax.debug.callback(print, c[0])
        return jnp.sin(c)
    return jax.lax.fori_loop(0, 100, body, x)  # fmt: skip


def callback_after_loop(x):
    c = jax.lax.fori_loop(0, 100, lambda i, c: jnp.sin(c), x)
    jax.debug.callback(print, c[0])
    return c


def take_a_range(x):
    return jnp.tanh(jnp.take(x, jnp.arange(3, 60003, 2), axis=0))


def take_anything(x, i):
    return jnp.tanh(x[i]), jnp.tanh(x[np.array([1, 5, 2, 900])]), x[7], x[3:90:2]


def add_to_all_rows(x, v):
    return x.at[jnp.arange(512)].add(v)


def add_to_some_rows(x, v, i):
    return x.at[i].add(v)


def select_by_product(table, ids):
    return jax.nn.one_hot(ids, 4096) @ table


def select_by_index(table, ids, x):
    return table[ids], jax.nn.one_hot(ids, 4096), jax.nn.one_hot(ids, 4096).T @ x


def dots_without_masks(x, y):
    return x @ y, jnp.sort(x, axis=0)


def named_dimensions(x, w):
    return jnp.tanh(jnp.einsum("bsd,de->sbe", x, w))


def stored_wide(x, c):
    h = x.astype(jnp.float32)
    return jax.lax.scan(lambda c, _: (jnp.tanh(c @ h), None), c, None, length=10)[0]


def wide_where_needed(x, w):
    return jnp.dot(x, w, preferred_element_type=jnp.float32), x.astype(jnp.float32)


def captured(x):
    return x @ TABLE


def passed(x, table):
    return x @ table + jnp.full((512, 640), 2.0)[0]


def pad_then_multiply(x, w):
    return jnp.pad(x, ((0, 512), (0, 0))) @ w


def multiply_then_pad(x, w):
    return jnp.pad(x[:504], ((0, 8), (0, 0))) @ w, jnp.pad(x @ w, ((0, 512), (0, 0)))


def distances(x, y):
    return jnp.sum(x**2, 1)[:, None] + jnp.sum(y**2, 1) - 2 * x @ y.T


def layer(x, y):
    return jnp.tanh(x @ y.T)


def precise_distances(x, y):
    return jnp.sum(x**2, 1)[:, None] + jnp.sum(y**2, 1) - 2 * jnp.dot(x, y.T, precision="highest")


def two_draws(key):
    a = jax.random.normal(key, (128,))
    return a + jax.random.uniform(key, (128,))


def split_and_drawn(key):
    k1, k2 = jax.random.split(key)
    return jax.random.normal(key, (128,)) + jax.random.uniform(k1, (128,))


def keys_of_their_own(key):
    k1, k2 = jax.random.split(key)
    noise = jax.random.normal(k1, (128,)) + jax.random.uniform(k2, (128,))
    mixed = jax.random.permutation(jax.random.fold_in(key, 3), noise)

    @jax.checkpoint
    def loss(y):
        return jnp.sum(jnp.sin(y * jax.random.normal(jax.random.fold_in(key, 4), (128,))))
    return jax.grad(loss)(mixed) + jax.random.randint(jax.random.fold_in(key, 2), (128,), 0, 10)  # fmt: skip


def log_under_where(x):
    return jax.grad(lambda x: jnp.sum(jnp.where(x > 0, jnp.log(x), 0.0)))(x)


def norm_under_where(x):
    def loss(x):
        n = jnp.sum(x**2, axis=1)
        return jnp.sum(jnp.where(n > 0, jnp.sqrt(n), 0.0))
    return jax.grad(loss)(x)  # fmt: skip


def quotient_under_where(x):
    return jax.grad(lambda x: jnp.sum(jnp.where(x != 0, jnp.sin(x) / x, 1.0)))(x)


def safe_where(x):
    def loss(x):
        safe = jnp.where(x > 0, x, 1.0)
        bounded = jnp.where(x > 0, jnp.log(1.5 + x * x), 0.0) + jnp.where(x < 3, jnp.sin(x), 0.0)
        return jnp.sum(jnp.where(x > 0, jnp.log(safe), 0.0) + bounded + jax.nn.relu(x) + jax.nn.softplus(x))
    return jax.grad(loss)(x)  # fmt: skip


SQUARE = (f32((1024, 1024)), f32((1024, 1024)))
ROWS = (f32((1024, 64)), f32((1024, 64)))
# The rule, the program, its arguments, and "warning", "note" or None.
CASES = [
    ("copy-in-loop", append_by_moving, (f32((512, 64)), f32((100, 64))), "warning"),
    ("copy-in-loop", append_in_place, (f32((512, 64)), f32((100, 64))), None),
    ("host-in-loop", callback_in_loop, (f32((64,)),), "warning"),
    ("host-in-loop", callback_after_loop, (f32((64,)),), None),
    ("gather-is-slice", take_a_range, (f32((65536, 256)),), "warning"),
    ("gather-is-slice", take_anything, (f32((1024, 256)), i32((64,))), None),
    ("scatter-is-dense", add_to_all_rows, (f32((512, 256)), f32((512, 256))), "warning"),
    ("scatter-is-dense", add_to_some_rows, (f32((512, 256)), f32((64, 256)), i32((64,))), None),
    ("one-hot-matmul", select_by_product, (f32((4096, 256)), i32((512,))), "warning"),
    ("one-hot-matmul", select_by_index, (f32((4096, 256)), i32((512,)), f32((512, 128))), None),
    ("stored-mask", dots_without_masks, SQUARE, None),
    ("stored-transpose", named_dimensions, (f32((64, 512, 256)), f32((256, 256))), None),
    ("upcast", stored_wide, (bf16((1024, 1024)), f32((64, 1024))), "warning"),
    ("upcast", wide_where_needed, (bf16((1024, 1024)), bf16((1024, 1024))), None),
    ("large-constant", captured, (f32((8, 512)),), "warning"),
    ("large-constant", passed, (f32((8, 512)), f32((512, 640))), None),
    ("padding-waste", pad_then_multiply, (f32((512, 512)), f32((512, 512))), "warning"),
    ("padding-waste", multiply_then_pad, (f32((512, 512)), f32((512, 512))), None),
    ("tf32", distances, ROWS, "warning"),
    ("tf32", layer, ROWS, "note"),
    ("tf32", precise_distances, ROWS, None),
    ("where-nan", log_under_where, MANY, "warning"),
    ("where-nan", norm_under_where, (f32((4096, 8)),), "warning"),
    ("where-nan", quotient_under_where, MANY, "warning"),
    ("where-nan", safe_where, MANY, None),
]


@pytest.mark.parametrize("rule, f, args, severity", CASES, ids=lambda value: getattr(value, "__name__", None))
def test_rule(rule, f, args, severity):
    hits = found(rule, f, *args)
    assert {hit for hit, _ in hits} == ({severity} if severity else set()), hits
    assert all(any(0 < line < 20 for line in lines) for _, lines in hits), hits


@pytest.mark.parametrize("platform", ["tokamak", "cpu"])
def test_keys(platform):
    key = jax.random.key(0)
    for f, lines in ((two_draws, {1, 2}), (split_and_drawn, {1, 2})):
        ((severity, at),) = found("key-reuse", f, key, platform=platform)
        assert severity == "warning" and set(at) == lines
    assert found("key-reuse", keys_of_their_own, key, platform=platform) == []
