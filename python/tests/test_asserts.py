"""tokamak.assert_fused and its companions: they pass, and say what broke and what would help."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tokamak

X = jnp.ones((64, 64))


def test_one_kernel_is_one_kernel():
    report = tokamak.assert_fused(jax.nn.softmax, X, kernels=1)
    assert len(report["kernels"]) == 1
    tokamak.assert_fused(jax.jit(lambda x, n: jnp.tanh(x) * n, static_argnums=1), X, 2)
    tokamak.assert_fused(jax.nn.softmax, X, tokamak_target="h200")


def test_more_kernels_are_named_with_their_lines_and_the_decision():
    def two_products(x, w):
        return jnp.tanh(x @ w) @ w

    with pytest.raises(tokamak.NotFusedError) as caught:
        tokamak.assert_fused(two_products, *[jnp.ones((256, 256))] * 2)
    said = str(caught.value)
    assert "two_products runs as 2 kernels, at most 1 expected (target cpu)" in said
    assert said.count("test_asserts.py:") >= 2 and " us" in said
    assert "rejected by fusion.vertical" in said and "would fuse if" in said
    assert "what would help:" in said and "fusion.rejected: it has a second contraction" in said
    assert len(caught.value.report["kernels"]) == 2
    assert isinstance(caught.value, AssertionError)
    tokamak.assert_fused(two_products, X, X, kernels=2)


def test_constraints_that_prevent_fusion_show():
    with pytest.raises(tokamak.NotFusedError, match="what would help"):
        tokamak.assert_fused(lambda x: jnp.tanh(x) * 2, X, tokamak_options={"tokamak_fusion": "none"})


def test_host_steps_are_named():
    tokamak.assert_no_host_steps(jnp.tanh, X)

    def calls_back(x):
        return jax.pure_callback(np.tanh, jax.ShapeDtypeStruct(x.shape, x.dtype), x) + 1

    with pytest.raises(tokamak.HostStepError, match=r"calls_back has 1 steps on the host(.|\n)*test_asserts.py"):
        tokamak.assert_no_host_steps(calls_back, X)


def test_memory_is_limited():
    report = tokamak.assert_memory_below(jnp.tanh, X, bytes=1 << 20)
    peak = report["fused"]["peak_bytes"]
    tokamak.assert_memory_below(jnp.tanh, X, bytes=peak + 1)
    with pytest.raises(tokamak.MemoryLimitError, match=rf"\({peak} bytes\)(.|\n)*what would help"):
        tokamak.assert_memory_below(jnp.tanh, X, bytes=peak)


def test_donation_that_would_lower_the_peak_is_advised():
    def step(state, gradient):
        return state - 0.1 * gradient

    donating = jax.jit(step, donate_argnums=0)
    size = X.nbytes
    tokamak.assert_memory_below(donating, X, X, bytes=2 * size + 1024)
    for plain in (step, jax.jit(step)):
        with pytest.raises(tokamak.MemoryLimitError, match=r"donate_argnums=\(0,\)\): 32.8 kB, if the caller does not"):
            tokamak.assert_memory_below(plain, X, X, bytes=2 * size + 1024)


def test_a_second_compilation_is_explained():
    f = jax.jit(lambda x, scale: x * scale)
    tokamak.assert_no_recompile(f, [(X, 2.0), (X + 1, 3.0), ((X, 4.0), {})])
    with pytest.raises(tokamak.RecompileError, match=r"call 2 of 2(.|\n)*argument 0 was float32\[64,64\], is float32\[3,64\](.|\n)*pad"):
        tokamak.assert_no_recompile(jax.jit(lambda x: x + 1), [(X,), (X[:3],)])
    with pytest.raises(tokamak.RecompileError, match=r"weakly typed(.|\n)*what would help(.|\n)*weakly typed"):
        tokamak.assert_no_recompile(jax.jit(lambda x, s: x * s), [(X, 2.0), (X, jnp.float32(2))])


def test_a_block_may_not_compile():
    f = jax.jit(lambda x: x * 5)
    with tokamak.assert_no_recompile(f, allowed=1):
        f(X)
    with tokamak.assert_no_recompile(f):
        f(X + 0)
    with pytest.raises(tokamak.RecompileError, match=r"1 compilations, at most 0(.|\n)*test_asserts.py"):
        with tokamak.assert_no_recompile(f):
            f(X[:5])
    f(X[:6])  # the listener is gone
    with pytest.raises(ValueError):  # errors of the block pass through
        with tokamak.assert_no_recompile():
            raise ValueError
