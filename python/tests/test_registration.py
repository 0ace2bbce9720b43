"""How JAX discovers the plugin, and when it does not."""

import shutil

import pytest
from conftest import LIBRARY, ROOT, output, python

FIRST = "import jax; print(jax.jit(lambda x: x*2+1)(jax.numpy.arange(8.)))"
ANSWER = "[ 1.  3.  5.  7.  9. 11. 13. 15.]\n"


def test_first_command_prints_the_answer_and_nothing_else():
    assert output(FIRST) == ANSWER


def test_it_is_the_default_where_it_is_installed():
    code = "import jax; print(jax.default_backend(), jax.devices()[0].platform, jax.devices('cpu')[0].platform)"
    assert output(code, JAX_PLATFORMS=None) == "tokamak tokamak cpu\n"


def test_another_platform_can_be_chosen():
    code = "import jax; print(jax.default_backend(), float(jax.numpy.sum(jax.numpy.arange(3.))))"
    assert output(code, JAX_PLATFORMS="cpu") == "cpu 3.0\n"


def test_a_platform_that_was_not_chosen_is_not_loaded():
    code = "import jax; jax.devices(); print('libtokamak' in open('/proc/self/maps').read())"
    assert output(code, JAX_PLATFORMS="cpu") == "False\n"


def test_named_in_the_environment_too():
    """JAX rejects a second registration: initialize() then only adds its lowerings."""
    code = (
        "import jax, jax.numpy as jnp\n"
        "assert 'tokamak' in [d.platform for d in jax.devices()]\n"
        "print(jnp.linalg.eigvalsh(jnp.diag(jnp.array([3., 2.]))))\n"
        "x = jnp.ones(4); jax.jit(lambda x: x + 1, donate_argnums=0)(x); print(x.is_deleted())"
    )
    said = output(code, PJRT_NAMES_AND_LIBRARY_PATHS=f"tokamak:{LIBRARY}")
    assert said == "[2. 3.]\nTrue\n"


def test_named_in_the_environment_without_the_package():
    """The library alone runs what JAX lowers for an unknown platform."""
    done = python(FIRST, PJRT_NAMES_AND_LIBRARY_PATHS=f"tokamak:{LIBRARY}", PYTHONPATH="/")
    assert (done.returncode, done.stdout) == (0, ANSWER), done.stderr


@pytest.fixture
def without_library(tmp_path):
    """A copy of the package without a library."""
    shutil.copytree(ROOT / "python", tmp_path / "python", ignore=shutil.ignore_patterns("tests", "*.so", "__pycache__"))
    return str(tmp_path / "python")


def test_without_a_library_jax_starts_as_ever(without_library):
    assert output(FIRST, JAX_PLATFORMS=None, PYTHONPATH=without_library) == ANSWER


def test_without_a_library_but_asked_for(without_library):
    done = python(FIRST, PYTHONPATH=without_library)
    assert done.returncode == 1
    assert "libtokamak.so is missing at" in done.stderr


NO_SUCH_DEVICE = "TOKAMAK_DEVICE: backend 'gpuu' is none of cuda, cpu and interp"


def test_a_misspelt_platform():
    done = python(FIRST, JAX_PLATFORMS="tokamk")
    assert done.returncode == 1
    assert "JAX_PLATFORMS has 'tokamk'; did you mean 'tokamak'?" in done.stderr
    assert "did you mean" not in python(FIRST, JAX_PLATFORMS="cpu").stderr


def test_where_no_device_serves_it_stays_away_and_says_so():
    done = python("import jax; print(jax.default_backend())", JAX_PLATFORMS=None, TOKAMAK_DEVICE="gpuu")
    assert done.returncode == 0, done.stderr
    assert done.stdout in ("cpu\n", "gpu\n")  # whatever else is installed
    assert "tokamak is not registered with JAX: " + NO_SUCH_DEVICE in done.stderr


@pytest.mark.parametrize("platforms", ["tokamak", "tokamak,cpu"])
def test_explicit_request_for_an_absent_device(platforms):
    done = python(FIRST, JAX_PLATFORMS=platforms, TOKAMAK_DEVICE="gpuu")
    assert done.returncode == 1
    assert "RuntimeError: Unable to initialize backend 'tokamak'" in done.stderr
    assert NO_SUCH_DEVICE in done.stderr
    assert "known backends" not in done.stderr


def test_environment_names_an_absent_device():
    done = python(FIRST, PJRT_NAMES_AND_LIBRARY_PATHS=f"tokamak:{LIBRARY}", PYTHONPATH="/", TOKAMAK_DEVICE="gpuu")
    assert done.returncode == 1
    assert NO_SUCH_DEVICE in done.stderr


def test_the_package_lists_present_devices():
    code = (
        "import tokamak\n"
        "assert tokamak.devices() == []\n"
        "try: print(tokamak.explain(lambda x: x + 1, 1.))\n"
        "except tokamak.ExplainError as error: print(error)\n"
    )
    done = python(code, JAX_PLATFORMS="cpu", TOKAMAK_DEVICE="gpuu")
    assert done.returncode == 0, done.stderr
    assert NO_SUCH_DEVICE in done.stdout


def test_several_devices():
    assert output("import jax; print(len(jax.devices()))", TOKAMAK_NUM_DEVICES=3) == "3\n"
