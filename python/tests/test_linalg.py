"""Linear algebra that JAX does not lower for unknown platforms: LAPACK, through the library."""

import functools

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import pytest

A = np.array([[4, 1, 2, 0], [1, 3, 0, 1], [2, 0, 5, 1], [0, 1, 1, 2]], np.float32)
B = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
C = (B + 1j * B.T).astype(np.complex64)
TALL = np.random.default_rng(1).normal(size=(2, 5, 3)).astype(np.float32)


def close(a, b, tolerance=1e-4):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), tolerance, tolerance)


@pytest.mark.parametrize("a", [A, C + C.conj().T], ids=["real", "complex"])
def test_eigh(a):
    w, v = jax.jit(jnp.linalg.eigh)(a)
    close(w, np.linalg.eigvalsh(a))
    close(a @ v, v * w)


@pytest.mark.parametrize("a", [B, C], ids=["real", "complex"])
def test_eig(a):
    w, v = jax.jit(jnp.linalg.eig)(a)
    close(np.sort_complex(np.asarray(w)), np.sort_complex(np.linalg.eigvals(a)))
    close(a @ np.asarray(v), np.asarray(v) * np.asarray(w))


@pytest.mark.parametrize("full", [True, False])
def test_svd(full):
    u, s, vt = jax.jit(lambda a: jnp.linalg.svd(a, full_matrices=full))(TALL)
    close(s, np.linalg.svd(TALL, compute_uv=False))
    close(np.asarray(u)[..., :3] * np.asarray(s)[..., None, :] @ np.asarray(vt), TALL)


@pytest.mark.parametrize("a", [TALL, C], ids=["batch", "complex"])
def test_qr(a):
    q, r = jax.jit(jnp.linalg.qr)(a)
    close(np.asarray(q) @ np.asarray(r), a)
    close(np.swapaxes(np.asarray(q).conj(), -1, -2) @ np.asarray(q), np.broadcast_to(np.eye(a.shape[-1]), r.shape))


def test_qr_with_pivoting():
    q, r, p = jax.jit(lambda a: jsl.qr(a, pivoting=True))(B)
    close(np.asarray(q) @ np.asarray(r), B[:, np.asarray(p)])


@pytest.mark.parametrize("a", [B, C], ids=["real", "complex"])
def test_lu(a):
    p, l, u = jax.jit(jsl.lu)(a)
    close(np.asarray(p) @ np.asarray(l) @ np.asarray(u), a)


def test_lu_of_a_batch():
    lu, _, permutation = jax.jit(jax.lax.linalg.lu)(TALL)
    lower, upper = np.tril(np.asarray(lu), -1) + np.eye(5, 3), np.triu(np.asarray(lu))[:, :3]
    close(lower @ upper, np.take_along_axis(TALL, np.asarray(permutation)[..., None], axis=1))


def test_solve_inverse_determinant():
    close(jax.jit(jnp.linalg.solve)(B, A), np.linalg.solve(B, A), 1e-3)
    close(jax.jit(jnp.linalg.inv)(A), np.linalg.inv(A))
    close(jax.jit(jnp.linalg.det)(A), np.linalg.det(A))


def test_cholesky():
    close(jax.jit(jnp.linalg.cholesky)(A), np.linalg.cholesky(A))
    assert np.isnan(np.asarray(jnp.linalg.cholesky(-A))).any()


def test_triangular_solve():
    close(jax.jit(lambda a, b: jsl.solve_triangular(a, b, lower=True))(A, B), np.linalg.solve(np.tril(A), B))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("lower", [True, False], ids=["lower", "upper"])
@pytest.mark.parametrize("trans", [False, True], ids=["plain", "transposed"])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_many_small_triangular_systems(side, lower, trans, dtype):
    a = np.random.default_rng(2).normal(size=(50, 3, 3)) + 4 * np.eye(3)
    a = (a + 1j * a.transpose(0, 2, 1) if dtype == np.complex64 else a).astype(dtype)
    b = np.random.default_rng(3).normal(size=(50, 3, 5) if side == "left" else (50, 5, 3)).astype(dtype)
    triangle = np.tril(a) if lower else np.triu(a)
    triangle = triangle.transpose(0, 2, 1) if trans else triangle
    solve = functools.partial(jax.lax.linalg.triangular_solve, left_side=side == "left", lower=lower, transpose_a=trans)
    x = np.asarray(jax.jit(solve)(a, b))
    close(triangle @ x if side == "left" else x @ triangle, b, 1e-3)


def test_schur():
    t, z = jax.jit(jsl.schur)(B)
    close(np.asarray(z) @ np.asarray(t) @ np.asarray(z).T, B)


def test_hessenberg():
    h, q = jax.jit(lambda a: jsl.hessenberg(a, calc_q=True))(B)
    close(np.asarray(q) @ np.asarray(h) @ np.asarray(q).T, B)
    close(np.tril(h, -2), np.zeros((4, 4)))


def test_tridiagonal():
    from jax.lax import linalg

    _, d, e, _ = jax.jit(lambda a: linalg.tridiagonal(a, lower=True))(A)
    full = np.diag(np.asarray(d)) + np.diag(np.asarray(e), 1) + np.diag(np.asarray(e), -1)
    close(np.linalg.eigvalsh(full), np.linalg.eigvalsh(A))
    dl, du = np.float32([0, 1, 2, 1]), np.float32([1, 1, 2, 0])
    x = jax.jit(linalg.tridiagonal_solve)(dl, np.float32([4, 5, 6, 7]), du, B)
    close((np.diag(np.float32([4, 5, 6, 7])) + np.diag(du[:-1], 1) + np.diag(dl[1:], -1)) @ np.asarray(x), B)


def test_gradients():
    for f in (lambda a: jnp.linalg.eigh(a + a.T)[0].sum(), lambda a: jnp.linalg.svd(a)[1].sum(), jnp.linalg.slogdet):
        loss = lambda a, f=f: jnp.sum(jnp.asarray(jax.tree.leaves(f(a))[-1]))  # noqa: E731
        g = np.asarray(jax.jit(jax.grad(loss))(B))
        step = 1e-2 * np.eye(4, dtype=np.float32)
        close((loss(B + step) - loss(B - step)) / 2e-2, g.trace(), 2e-2)


def test_functions_of_matrices():
    import scipy.linalg

    close(jax.jit(jsl.expm)(B), scipy.linalg.expm(B), 1e-3)
    close(jax.jit(jnp.linalg.pinv)(TALL), np.linalg.pinv(TALL), 1e-3)
    close(jax.jit(lambda a, b: jnp.linalg.lstsq(a, b)[0])(TALL[0], TALL[0, :, 0]), [1, 0, 0])
    assert int(jnp.linalg.matrix_rank(A)) == 4


def test_x64():
    with jax.enable_x64(True):
        a = A.astype(np.float64)
        close(jnp.linalg.eigvalsh(a), np.linalg.eigvalsh(a), 1e-12)
        close(jnp.linalg.inv(a) @ a, np.eye(4), 1e-12)


@pytest.mark.parametrize("f", [jnp.linalg.eigh, jnp.linalg.eig, jnp.linalg.svd], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_vectors_are_those_of_the_cpu(on_cpu, f, dtype):
    """The same signs and the same order as on JAX's CPU backend, because both call SciPy's LAPACK."""
    a = np.random.RandomState(3).standard_normal((2, 20, 20)).astype(dtype)
    a = a + 1j * a[::-1] if dtype == np.complex64 else a
    a = a + np.swapaxes(a.conj(), -1, -2) if f is jnp.linalg.eigh else a
    for got, expected in zip(jax.jit(f)(a), on_cpu(f, a)):
        np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3)


def test_singular_tridiagonal_systems_have_finite_solutions(on_cpu):
    from jax._src.lax import linalg

    n = 6
    for diagonal in (np.zeros(n), np.full(n, 2.0), np.array([0, 1, 0, 2, 0, 3.0])):
        args = [np.concatenate([[0.0], np.ones(n - 1)]), diagonal, np.concatenate([np.ones(n - 1), [0.0]])]
        args = [x.astype(np.float32) for x in (*args, np.arange(2 * n).reshape(n, 2) + 1.0)]
        f = functools.partial(linalg.tridiagonal_solve, perturb_singular=True)
        np.testing.assert_allclose(jax.jit(f)(*args), on_cpu(f, *args), rtol=1e-4, atol=1e-4)
    zero = [np.zeros(n, np.float32)] * 3 + [np.ones((n, 1), np.float32)]
    assert np.isfinite(jax.jit(f)(*zero)).all()
