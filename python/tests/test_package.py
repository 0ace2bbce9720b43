"""The package itself: its functions, debug(), and the wheel."""

import io
import pathlib
import subprocess
import sys
import venv
import zipfile

import jax
import jax.numpy as jnp
import pytest
import tokamak
from conftest import ROOT, environment, script


def test_versions_and_devices():
    assert tokamak.__version__[0].isdigit()
    assert len(tokamak.devices()) >= 1
    assert "backends" in tokamak.build_info()
    assert all(option["name"].startswith("tokamak_") and option["meaning"] for option in tokamak.options())


def test_importing_it_loads_neither_arrays_nor_the_library():
    code = ("import sys, tokamak; print({'jax', 'numpy', 'ml_dtypes'} & set(sys.modules),"
            " 'libtokamak' in open('/proc/self/maps').read())")  # fmt: skip
    done = script("-c", code)
    assert done.stdout == "set() False\n", done.stderr


def test_debug_says_what_each_jit_does():
    def some_function(x):
        return jnp.sin(x) + 1

    said = io.StringIO()
    with tokamak.debug(file=said):
        jax.block_until_ready(jax.jit(some_function)(jnp.ones(3)))
    lines = [line for line in said.getvalue().splitlines() if "some_function" in line]
    assert len(lines) == 2 and all(phase in lines[0] for phase in ("trace", "lower", "compile", "ms"))
    assert "first run" in lines[1]
    jax.jit(lambda x: x + 2)(jnp.ones(3))
    assert [line for line in said.getvalue().splitlines() if "some_function" in line] == lines


def test_it_stands_beside_torch_in_both_orders():
    pytest.importorskip("torch")
    for code in ("import torch, jax", "import jax, torch"):
        code += "; print(float(jax.numpy.ones(3).sum()))"
        done = script("-c", code)
        assert done.stdout == "3.0\n", done.stderr


@pytest.mark.slow
def test_wheel_in_a_fresh_venv(tmp_path):
    """Builds the wheel as pip does and installs it into an empty environment."""
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, ROOT], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert "-py3-none-" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    assert {"tokamak/__init__.py", "tokamak/libtokamak.so", "jax_plugins/tokamak/__init__.py"} <= set(names)
    assert "jax_plugins/__init__.py" not in names
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", wheel, f"jax=={jax.__version__}"], check=True)
    code = "import jax; print(jax.jit(lambda x: x*2+1)(jax.numpy.arange(8.)))"
    done = subprocess.run([python, "-c", code], env=environment(PYTHONPATH=None), text=True, capture_output=True, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("[ 1.  3.  5.  7.  9. 11. 13. 15.]\n", "")
    assert str(tmp_path) in subprocess.run([python, "-c", "import tokamak; print(tokamak.library_path())"],
                                           env=environment(PYTHONPATH=None), text=True, capture_output=True).stdout  # fmt: skip
    assert pathlib.Path(wheel).stat().st_size < 100 << 20
