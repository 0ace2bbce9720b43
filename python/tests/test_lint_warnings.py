"""TOKAMAK_LINT: warnings while programs are compiled; and the pytest plugin."""

import pytest
from conftest import python, script

CODE = """
import jax, jax.numpy as jnp

def network(x, weights):
    for w in weights:
        x = jnp.tanh(x @ w)
    return x

def noise(key, x):
    return x + jax.random.normal(key, x.shape) * jax.random.uniform(key, x.shape)

x = jnp.ones((64, 64))
for rows in (64, 32):
    jax.jit(network)(x[:rows], [x] * 1 + [x + i for i in range(11)])
jax.jit(noise)(jax.random.key(0), x)
jax.jit(jnp.tanh)(x)
"""


def warned(mode, tmp_path, *options):
    path = tmp_path / "script.py"
    path.write_text(CODE)
    done = script(*options, path, TOKAMAK_LINT=mode, TOKAMAK_CACHE="off")
    return done.returncode, done.stderr


def test_costly_lines_warn_once_by_default(tmp_path):
    code, said = warned(None, tmp_path)
    assert code == 0 and said.count("LintWarning") == 1, said
    assert "script.py:6: LintWarning: lint.unrolled-loop: " in said and " us per call: an unrolled Python loop: 12" in said


def test_all_findings_warn_when_asked_for(tmp_path):
    code, said = warned("1", tmp_path)
    assert code == 0 and said.count("LintWarning: lint.unrolled-loop") == 1
    assert "script.py:10: LintWarning: lint.key-reuse" in said and "dispatch-bound" not in said
    code, said = warned("1", tmp_path, "-W", "error::UserWarning")
    assert code == 1 and "LintWarning: lint.unrolled-loop" in said  # an exception like any other


def test_warnings_can_be_turned_off(tmp_path):
    assert warned("0", tmp_path) == (0, "")
    done = python("import jax; jax.jit(lambda x: x)(1.0)", TOKAMAK_LINT="2")
    assert done.returncode == 1 and "TOKAMAK_LINT: '2' is none of 0 and 1" in done.stderr


TESTS = """
import jax, jax.numpy as jnp, pytest

X = jnp.ones((64, 64))
WEIGHTS = [X * i for i in range(12)]

def network(x, weights):
    for w in weights:
        x = jnp.tanh(x @ w)
    return x

def test_costly():
    jax.jit(network)(X, WEIGHTS)

@pytest.mark.tokamak_lint(ignore=["unrolled-loop"])
def test_ignored():
    jax.jit(network)(X, WEIGHTS)

@pytest.mark.tokamak_lint(threshold="1000000us")
def test_below_its_threshold():
    jax.jit(network)(X, WEIGHTS)

@pytest.mark.tokamak_lint(enabled=False)
def test_not_linted():
    jax.jit(network)(X, WEIGHTS)

def test_fine():
    assert jax.jit(jnp.tanh)(X).shape == (64, 64)

@pytest.mark.tokamak_lint
def test_key_is_used_twice():
    key = jax.random.key(0)
    jax.random.normal(key), jax.random.normal(key, (3,))

@pytest.mark.tokamak_lint
def test_key_is_used_again_by_the_same_call():
    key = jax.random.key(0)
    jax.random.normal(key), jax.random.normal(key)

def test_fails_anyway():
    raise ValueError

@jax.jit
def step(x, weights):
    return network(x, weights)

@pytest.mark.tokamak_lint(enabled=False)
def test_compiles_a_function_without_lint():
    step(X, WEIGHTS)

def test_calls_it_again():
    step(X, WEIGHTS)
"""


@pytest.mark.parametrize("options, failed", [
    (("--tokamak-lint",), {"test_costly", "test_key_is_used_twice", "test_fails_anyway", "test_calls_it_again"}),
    pytest.param((), {"test_key_is_used_twice", "test_fails_anyway"}, marks=pytest.mark.slow),
])  # fmt: skip
def test_pytest_fails_costly_tests(options, failed, tmp_path):
    (tmp_path / "test_user.py").write_text(TESTS)
    done = script("-m", "pytest", "-q", "-p", "tokamak._pytest_lint", "-p", "no:cacheprovider", *options, "test_user.py", cwd=tmp_path)
    names = {line.split("::")[1].split(" ")[0] for line in done.stdout.splitlines() if line.startswith("FAILED")}
    assert names == failed, done.stdout
    if options:
        assert "the programs of this test cost more than they need:\nlint.unrolled-loop" in done.stdout
        assert "test_user.py:9 (network)" in done.stdout
