"""Donated buffers are consumed; using one afterwards raises an exception."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

add = jax.jit(lambda x, y: x + y, donate_argnums=0)


def test_donated_is_deleted_and_no_warning():
    x, y = jnp.arange(8.0), jnp.ones(8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        z = add(x, y)
    assert x.is_deleted() and not y.is_deleted()
    assert z.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


def test_use_after_donation_raises():
    x = jnp.arange(8.0)
    add(x, x + 1)
    for use in (lambda: x + 1, lambda: np.asarray(x), lambda: jax.jit(jnp.sin)(x)):
        with pytest.raises((RuntimeError, ValueError), match="deleted|donated"):
            use()
    assert float(jnp.ones(3).sum()) == 3  # the client remains usable


def test_a_chain_of_donations():
    step = jax.jit(lambda x: x * 1.5 + 1, donate_argnums=0)
    x, expected = jnp.zeros(1000), np.zeros(1000, np.float32)
    for _ in range(50):
        x, expected = step(x), expected * np.float32(1.5) + np.float32(1)
    np.testing.assert_allclose(np.asarray(x), expected, rtol=1e-6)


def test_a_buffer_donated_and_read_is_rejected_and_kept():
    x = jnp.arange(4.0)
    with pytest.raises(jax.errors.JaxRuntimeError, match="donated as argument 0 is also read as argument 1"):
        add(x, x)
    assert not x.is_deleted() and x.tolist() == [0, 1, 2, 3]
    assert add(x, jnp.ones(4)).tolist() == [1, 2, 3, 4]


def test_a_buffer_donated_twice_is_rejected_and_kept():
    x = jnp.arange(4.0)
    both = jax.jit(lambda x, y, z: (x + z, y * z), donate_argnums=(1, 2))
    with pytest.raises(jax.errors.JaxRuntimeError, match="donated as argument 1 is also donated as argument 2"):
        both(jnp.ones(4), x, x)
    assert x.tolist() == [0, 1, 2, 3]


def test_donated_while_it_is_still_being_computed():
    slow = jax.jit(lambda x: jax.lax.fori_loop(0, 200, lambda i, c: jnp.sin(c) + 1, x))
    x = slow(jnp.ones(64))
    z = add(x, jnp.ones(64))
    assert x.is_deleted()
    expected = np.ones(64, np.float32)
    for _ in range(200):
        expected = np.sin(expected) + 1
    np.testing.assert_allclose(np.asarray(z), expected + 1, rtol=1e-4)


def test_a_result_read_by_a_running_program_outlives_its_donation():
    x = jnp.ones(1000) * 3
    reader = jax.jit(lambda x: jax.lax.fori_loop(0, 100, lambda i, c: c + x, jnp.zeros(1000)))(x)
    add(x, jnp.ones(1000))
    assert float(reader[0]) == 300


def test_donation_of_a_pytree():
    state = {"w": jnp.ones((3, 3)), "b": [jnp.zeros(3), jnp.ones(())]}
    new = jax.jit(lambda s: jax.tree.map(lambda a: a + 1, s), donate_argnums=0)(state)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(state))
    assert float(new["b"][1]) == 2
