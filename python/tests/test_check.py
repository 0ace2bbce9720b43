"""TOKAMAK_CHECK and tokamak_require_kernels through JAX."""

import jax
import jax.numpy as jnp
import pytest
from conftest import python

PROGRAM = """
import jax, jax.numpy as jnp, numpy as np
def f(x):
    y = jax.nn.softmax(x @ x.T)
    return jax.lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c + y), y).sum(axis=0), jnp.sort(x[:, 0])
x = jax.random.normal(jax.random.key(0), (8, 8))
for backend in ("interp", "sim"):
    print([np.asarray(y).round(4).tolist() for y in jax.jit(f, compiler_options={"tokamak_backend": backend})(x)])
"""


def test_a_clean_run_is_silent():
    done = python(PROGRAM, TOKAMAK_CHECK="kernels,memory")
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    first, second = done.stdout.splitlines()
    assert first == second


def test_another_word_is_rejected():
    done = python(PROGRAM, TOKAMAK_CHECK="all")
    assert done.returncode != 0
    assert "'all' is none of kernels, memory, horizontal, fault, reject, chunks and codegen-crash" in done.stderr


def test_kernels_are_required():
    options = {"tokamak_backend": "sim", "tokamak_require_kernels": True}
    assert jax.jit(lambda x: x + 1, compiler_options=options)(jnp.ones(3)).tolist() == [2, 2, 2]
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"(?s)TK4005.*custom-call.*test_check\.py"):
        jax.jit(lambda x: jax.lax.linalg.lu(x), compiler_options=options)(jnp.ones((3, 3)))
