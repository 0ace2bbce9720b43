"""A sample of JAX's own primitive harnesses, with the compilers of all other backends disabled.

References are computed first, on JAX's CPU backend. Then compiling for a platform other than tokamak raises.
LAPACK on the host, called by the library, is the only exception (docs/jax.md lists the ops)."""

import zlib

import jax
import numpy as np
import pytest

harnesses = pytest.importorskip("jax._src.internal_test_util.test_harnesses")

EVERY = 70


def sample():
    chosen = [h for h in harnesses.all_harnesses if zlib.crc32(b"python" + h.fullname.encode()) % EVERY == 0]
    return sorted(chosen, key=lambda h: h.fullname)


def arguments(harness):
    return harness.dyn_args_maker(np.random.RandomState(zlib.crc32(harness.fullname.encode()) & 0x7FFFFFFF))


def run(harness, device):
    with jax.default_device(device):
        return [np.asarray(x) for x in jax.tree.leaves(jax.jit(harness.dyn_fun)(*arguments(harness)))]


@pytest.fixture(scope="module")
def references(cpu):
    found = {}
    for harness in sample():
        if any(limit.filter(device="cpu", dtype=harness.dtype) for limit in harness.jax_unimplemented):
            continue
        try:
            found[harness.fullname] = harness, run(harness, cpu)
        except Exception:
            pass  # JAX's CPU backend fails: nothing to compare with
    return found


@pytest.fixture
def only_tokamak(monkeypatch):
    from jax._src import compiler

    compile_ = compiler.backend_compile_and_load

    def guarded(backend, *args, **keywords):
        if backend.platform != "tokamak":
            raise AssertionError(f"something was compiled for {backend.platform}")
        return compile_(backend, *args, **keywords)

    monkeypatch.setattr(compiler, "backend_compile_and_load", guarded)
    jax.clear_caches()


def differs(got, expected):
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return "type"
    if expected.dtype.kind in "biu":
        return None if np.array_equal(got, expected) else "integers"
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    got, size, expected = got.astype(wide), expected.dtype.itemsize, expected.astype(wide)
    tolerance = {1: 1.0, 2: 0.2, 4: 1e-4, 8: 1e-4}.get(size, 1e-4)
    scale = max(1.0, float(np.nanmax(np.abs(np.where(np.isfinite(expected), expected, 0)), initial=0)))
    return None if np.allclose(got, expected, tolerance, tolerance * scale, equal_nan=True) else "values"


def test_the_guard_works(only_tokamak, cpu):
    with jax.default_device(cpu), pytest.raises(AssertionError, match="compiled for cpu"):
        jax.jit(lambda x: x + 41)(np.float32(1))


def test_sample_of_harnesses(references, only_tokamak):
    device, misses = jax.devices("tokamak")[0], {}
    assert len(references) > 50
    for name, (harness, expected) in references.items():
        try:
            got = run(harness, device)
            wrong = [why for g, e in zip(got, expected, strict=True) if (why := differs(g, e))]
            if wrong:
                misses[name] = wrong
        except Exception as error:
            misses[name] = f"{type(error).__name__}: {str(error)[:200]}"
    assert len(misses) <= 0.01 * len(references), misses
