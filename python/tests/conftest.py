"""Fixtures of the JAX frontend's tests. In-process tests run with both platforms, Tokamak first; tests that need a
separate process (fork, exit, the environment) use `python()`."""

import json
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


def script(*words, timeout=120, cwd=None, **changes):
    """Runs Python with these words, a file and its arguments, in a separate process."""
    return subprocess.run([sys.executable, *map(str, words)], env=environment(**changes), text=True, capture_output=True,
                          timeout=timeout, cwd=cwd)  # fmt: skip


def python(code, timeout=120, **changes):
    """Runs code in a separate process."""
    return script("-c", code, timeout=timeout, cwd="/", **changes)


def output(code, **keywords):
    """The output of code in a separate process, which must succeed and print nothing on stderr."""
    done = python(code, **keywords)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def keep_main(monkeypatch):
    """Undoes what running a script in this process changes: its __main__, arguments and path of imports."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    for name in ("argv", "path"):
        monkeypatch.setattr(sys, name, list(getattr(sys, name)))


@pytest.fixture
def run_here(tmp_path, monkeypatch, keep_main):
    """_lint_script.run in this process: quicker than a process for each run."""
    import jax

    from tokamak import _lint_child, _lint_script

    def run(script, args=(), target="host", quiet=False, timeout=None, patches=None, values=None, watch=(), stdout=None):
        jax.clear_caches()
        config = {"script": str(script), "args": list(args), "target": target, "patches": patches, "values": values,
                  "watch": [list(w) for w in watch], "stdout": stdout or str(tmp_path / "out")}  # fmt: skip
        return json.loads(json.dumps(_lint_child.execute(config))) | {"stderr": ""}

    monkeypatch.setattr(_lint_script, "run", run)
    return run


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
