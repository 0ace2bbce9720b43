"""Small programs of many kinds, compared with JAX's own CPU backend."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

X = np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6)


def check(got, expected, tolerance=1e-5):
    for g, e in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert g.dtype == e.dtype and g.shape == e.shape
        np.testing.assert_allclose(np.asarray(g, np.float64), np.asarray(e, np.float64), tolerance, tolerance)


PROGRAMS = {
    "arithmetic": lambda x: x * 2 + 1,
    "nothing": lambda x: x,
    "two results": lambda x: {"a": jnp.sin(x), "b": (x.sum(), x > 0)},
    "matmul": lambda x: x @ x.T,
    "softmax": lambda x: jax.nn.softmax(x, axis=-1),
    "gradient": jax.grad(lambda x: jnp.sum(jnp.tanh(x @ x.T) ** 2)),
    "scan": lambda x: lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(6), x),
    "while": lambda x: lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2, x**2 + 1),
    "cond": lambda x: lax.cond(x[0, 0] > 0, lambda: x + 1, lambda: x - 1),
    "vmap": jax.vmap(lambda r: jnp.cumsum(r)[::-1]),
    "sort": lambda x: (jnp.sort(x[:, ::-1], axis=1), jnp.argsort(-x, axis=0)),
    "gather": lambda x: x[jnp.array([3, 0, 3]), 2:5],
    "scatter": lambda x: x.at[jnp.array([0, 0, 2]), 1].add(5.0),
    "conv": lambda x: lax.conv(x[None, None], jnp.ones((2, 1, 3, 3)), (1, 1), "SAME"),
    "random": lambda x: jax.random.normal(jax.random.key(7), (3, 5)) + x[0, 0],
    "bf16": lambda x: (x.astype(jnp.bfloat16) * 3 + 1).astype(jnp.float32),
    "int8": lambda x: (x * 40).astype(jnp.int8) + jnp.int8(100),
    "complex": lambda x: jnp.abs(jnp.fft.fft(x[0])),
    "empty": lambda x: x[:0] + 1,
    "scalar": lambda x: x[1, 1] * 3,
    "top_k": lambda x: lax.top_k(x, 3),
    "special": lambda x: (jax.scipy.special.erf(x), jax.scipy.special.gammaln(x + 3), jnp.log1p(x**2)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, on_cpu):
    got = jax.jit(PROGRAMS[name])(X)
    assert {d.platform for leaf in jax.tree.leaves(got) for d in leaf.devices()} == {"tokamak"}
    # XLA keeps a bf16 sum in f32 if it is widened directly afterwards.
    check(got, on_cpu(PROGRAMS[name], X), 1e-2 if name == "bf16" else 1e-5)


def test_eager():
    x = jnp.arange(6).reshape(2, 3)
    assert (x.T[1] * 2).tolist() == [2, 8]
    assert float(jnp.linalg.norm(jnp.array([3.0, 4.0]))) == 5.0


@pytest.mark.parametrize("array", [
    X[:, ::-1], X.T, X[::2, ::-3], np.broadcast_to(np.float32(3), (2, 5)), np.zeros((0, 3), np.int32), np.float64(2.5),
    np.array([True, False]), np.arange(5, dtype=np.uint8), X.astype(np.complex64),
], ids=str)  # fmt: skip
def test_arrays_come_back_as_they_went(array):
    back = np.asarray(jax.device_put(array))
    assert back.shape == array.shape
    np.testing.assert_array_equal(back, np.asarray(array, back.dtype))


def test_the_array_may_change_after_device_put():
    array = np.ones(1000, np.float32)
    put = (jax.device_put(array) + 0).block_until_ready()  # until then it may be read in place, as on JAX's CPU
    kept = jax.device_put(np.array(array))
    array[:] = 7
    assert float(put.sum()) == 1000 and float(kept.sum()) == 1000


def test_ahead_of_time():
    compiled = jax.jit(lambda x: jnp.sin(x) @ x.T).lower(X).compile()
    check(compiled(X), np.sin(X) @ X.T)
    assert "sine" in compiled.as_text() or "fusion" in compiled.as_text()
    assert compiled.cost_analysis()["flops"] > 0
    assert compiled.memory_analysis().output_size_in_bytes == 64


def test_x64():
    with jax.enable_x64(True):
        x = jnp.arange(3, dtype=jnp.float64) / 3
        assert x.dtype == jnp.float64 and float(x[1]) == 1 / 3


def test_export():
    exported = jax.export.export(jax.jit(lambda x: x * 3), platforms=("tokamak", "cpu"))(X)
    check(exported.call(X), X * 3)


def test_moving_between_platforms(cpu):
    there = jax.device_put(jax.device_put(X), cpu)
    back = jax.device_put(there, jax.devices("tokamak")[0])
    assert there.devices() == {cpu} and back.devices() == {jax.devices("tokamak")[0]}
    np.testing.assert_array_equal(np.asarray(back), X)


def test_numpy_reads_it_where_dlpack_is_rejected():
    """JAX exports DLPack only for platforms that it knows."""
    x = jax.device_put(X)
    with pytest.raises(Exception):
        np.from_dlpack(x)
    np.testing.assert_array_equal(np.asarray(x), X)
