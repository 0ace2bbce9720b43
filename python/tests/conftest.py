"""Fixtures of the JAX frontend's tests. In-process tests run with both platforms, Tokamak first; tests that need a
separate process (fork, exit, the environment) use `python()`."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

os.environ["JAX_PLATFORMS"] = "tokamak,cpu"
os.environ.pop("PJRT_NAMES_AND_LIBRARY_PATHS", None)

import numpy as np
import pytest

from tokamak import _library

try:
    LIBRARY = _library.path()
except _library.LibraryMissing as missing:
    pytest.exit(str(missing), returncode=2)


def environment(**changes):
    """The environment of this process with changes; None removes a variable."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "JAX_PLATFORMS": "tokamak"}
    for name, value in changes.items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = str(value)
    return env


def python(code, timeout=120, **changes):
    """Runs code in a separate process."""
    return subprocess.run([sys.executable, "-c", code], env=environment(**changes), text=True, capture_output=True,
                          timeout=timeout, cwd="/")  # fmt: skip


def output(code, **keywords):
    """The output of code in a separate process, which must succeed and print nothing on stderr."""
    done = python(code, **keywords)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def cpu():
    import jax

    return jax.devices("cpu")[0]


@pytest.fixture
def on_cpu(cpu):
    """Runs a jitted function on JAX's own CPU backend, for expected values."""
    import jax

    def run(f, *args, **keywords):
        with jax.default_device(cpu):
            return jax.tree.map(np.asarray, jax.jit(f, **keywords)(*jax.device_put(args, cpu)))

    return run
