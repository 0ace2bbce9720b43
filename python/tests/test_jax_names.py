"""The private names of JAX that the package uses. A JAX version is supported if this test passes."""

import ast
import pathlib

import jax
import tokamak
from tokamak import _jax

SUPPORTED = ("0.10.", "0.11.")


def test_every_feature_is_on():
    jax.devices()
    assert set(_jax.features) == set(_jax._FEATURES)
    assert {name: why for name, why in _jax.features.items() if why} == {}


def test_the_installed_version_is_one_that_is_tested():
    assert jax.__version__.startswith(SUPPORTED)


def test_private_names_are_in_the_modules_for_them():
    for path in pathlib.Path(tokamak.__file__).parent.parent.rglob("*.py"):
        if path.name.endswith("_jax.py") or "tests" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not any(name.startswith(("jax._src", "jaxlib")) for name in names), f"{path}:{node.lineno}"


def test_a_name_that_is_gone_costs_one_feature_and_a_line(monkeypatch, caplog):
    from jax._src.interpreters import mlir

    monkeypatch.setattr(_jax, "features", {})
    monkeypatch.delattr(mlir, "_platforms_with_donation")
    _jax.extend()
    assert [name for name, why in _jax.features.items() if why] == ["donation"]
    assert "donation is off" in caplog.text and jax.__version__ in caplog.text


def test_extending_twice_changes_nothing():
    from jax._src import callback

    emit = callback.emit_python_callback
    _jax.extend()
    assert callback.emit_python_callback is emit
