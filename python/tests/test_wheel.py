"""`pip install .` in a fresh environment, as a user runs it. Takes minutes and a network connection: scripts/nightly runs it."""

import os
import subprocess
import sys
import venv

import pytest
from conftest import ROOT

ONE_LINER = "import jax; print(jax.jit(lambda x: x*2+1)(jax.numpy.arange(8.)))"


@pytest.mark.slow
def test_pip_install_in_a_fresh_environment(tmp_path):
    subprocess.run(["git", "clone", "-q", str(ROOT), str(tmp_path / "clone")], check=True)
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv/bin/python"
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "JAX_PLATFORMS")}
    done = subprocess.run([python, "-m", "pip", "install", "."], cwd=tmp_path / "clone", env={"CXX": "c++", **clean},
                          capture_output=True, text=True, timeout=3600)  # fmt: skip
    if "No matching distribution found" in done.stdout + done.stderr:
        pytest.skip("no network from which pip fetches scikit-build-core and JAX")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    said = subprocess.run([python, "-c", ONE_LINER], cwd="/", env={**clean, "JAX_PLATFORMS": "tokamak"},
                          capture_output=True, text=True, timeout=300)  # fmt: skip
    assert (said.returncode, said.stderr) == (0, ""), said.stderr
    assert said.stdout.split() == "[ 1. 3. 5. 7. 9. 11. 13. 15.]".split()
    installed = tmp_path / f"venv/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    (wheel,) = installed.glob("tokamak-*.dist-info/WHEEL")
    assert "Tag: py3-none-linux" in wheel.read_text()
    needed = subprocess.run(["ldd", installed / "tokamak/libtokamak.so"], capture_output=True, text=True).stdout
    assert not any(name in needed for name in ("fmt", "lapack", "blas", "gfortran", "libz")), needed
