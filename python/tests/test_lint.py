"""tokamak.lint() and `tokamak lint script.py`: findings of programs and of runs, suppressions, output formats."""

import json
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tokamak
from conftest import script
from tokamak import _lint_keys
from tokamak._lint_result import Lint, Lints, limits

X = jnp.ones((32, 32))
KEY = jax.random.key(0)


def network(x, weights):
    for w in weights:
        x = jnp.tanh(x @ w)
    return x


def test_findings_are_a_list_with_formats():
    found = tokamak.lint(network, X, [X + i for i in range(12)])
    assert isinstance(found, list) and found.rule("unrolled-loop") and found.warnings
    loop = found.rule("lint.unrolled-loop")[0]
    first = network.__code__.co_firstlineno
    assert any(line.endswith(f"test_lint.py:{first + 1}") for line in loop.lines)  # the loop
    assert any(f"test_lint.py:{first + 2}" in line for line in loop.lines)  # its body
    assert "lint.unrolled-loop" in str(found) and str(found).splitlines()[-1].endswith("us per call")
    data = json.loads(found.json())
    assert data["lints"][0]["lines"][0]["file"].endswith("test_lint.py") and data["call_us"] > 0
    log = json.loads(found.sarif())
    assert log["version"] == "2.1.0"
    result = next(r for r in log["runs"][0]["results"] if r["ruleId"] == "lint.unrolled-loop")
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].endswith("test_lint.py")
    assert not found.without("unrolled-loop").rule("unrolled-loop")


def test_jitted_functions_keep_their_arguments():
    step = jax.jit(lambda x, n: jnp.tanh(x) * n, static_argnums=1, donate_argnums=0)
    found = tokamak.lint(step, X, 3)
    assert all(lint.rule != "lint.missing-donation" for lint in found)
    with pytest.raises(tokamak.ExplainError):
        tokamak.lint(step, X, 3, tokamak_target="tpu")


def reused(f, key=KEY):
    return [lint.rule for lint in tokamak.lint(f, key, X) if lint.rule == "lint.key-reuse"]


@pytest.mark.parametrize("key", [KEY, jax.random.PRNGKey(0)], ids=["typed", "raw"])
def test_reused_keys_are_found(key):
    def draws_twice(k, x):
        return jax.random.normal(k, x.shape) + jax.random.uniform(k, x.shape)

    def after_split(k, x):
        a, _ = jax.random.split(k)
        return jax.random.normal(k, x.shape) * jax.random.normal(a)

    def in_python_loop(k, x):
        for _ in range(3):
            x = x + jax.random.normal(k, x.shape)
        return x

    def in_loop(k, x):
        return jax.lax.fori_loop(0, 3, lambda i, c: c + jax.random.normal(k, x.shape), x)

    def folded_twice(k, x):
        return jax.random.normal(jax.random.fold_in(k, 1)) + jax.random.uniform(jax.random.fold_in(k, 1))

    for f in (draws_twice, after_split, in_python_loop, in_loop, folded_twice):
        assert reused(f, key), f.__name__


@pytest.mark.parametrize("key", [KEY, jax.random.PRNGKey(0)], ids=["typed", "raw"])
def test_keys_that_are_used_once_are_not_reported(key):
    def split(k, x):
        a, b = jax.random.split(k)
        return jax.random.normal(a, x.shape) + jax.random.uniform(b, x.shape)

    def folded(k, x):
        return sum(jax.random.normal(jax.random.fold_in(k, i)) for i in range(3)) + x

    def scanned(k, x):
        return jax.lax.scan(lambda c, k: (c + jax.random.normal(k, x.shape), None), x, jax.random.split(k, 4))[0]

    def carried(k, x):
        def body(carry, _):
            k, x = carry
            k, own = jax.random.split(k)
            return (k, x + jax.random.normal(own, x.shape)), None

        return jax.lax.scan(body, (k, x), None, length=4)[0][1]

    def either(k, x):
        return jax.lax.cond(x[0, 0] > 0, lambda: jax.random.normal(k), lambda: jax.random.uniform(k))

    def checkpointed(k, x):
        return jax.grad(jax.checkpoint(lambda x: jnp.sum(jnp.sin(x * jax.random.normal(k, x.shape)))))(x)

    def folded_in_loop(k, x):
        return jax.lax.fori_loop(0, 3, lambda i, c: c + jax.random.normal(jax.random.fold_in(k, i), x.shape), x)

    def mapped(k, x):
        return jax.vmap(jax.random.normal)(jax.random.split(k, 5)), x

    for f in (split, folded, scanned, carried, either, checkpointed, folded_in_loop, mapped):
        assert not reused(f, key), f.__name__
    jaxpr = jax.make_jaxpr(split)(key, X).jaxpr
    assert _lint_keys.consumed(jaxpr) == {0}


def test_numpy_numbers_that_widen_arrays_are_found():
    def widened(x):
        return x / np.sqrt(64)

    def meant(x, scale):
        return x.astype(jnp.float32) * np.float32(2) + x * scale + jax.nn.softmax(x) * 0.5

    half = X.astype(jnp.bfloat16)
    found = tokamak.lint(widened, half).rule("promotion")
    assert found and "`np.sqrt(64)`" in found[0].text
    assert not tokamak.lint(meant, half, X).rule("promotion")


def test_comments_suppress():
    def twice(k, x):
        a = jax.random.normal(k, x.shape)
        # tokamak: ignore[key-reuse]
        b = jax.random.normal(k, x.shape)
        return a + b

    def other(k, x):
        return jax.random.normal(k) + jax.random.normal(k) + x  # tokamak: ignore[lint.promotion]

    found = tokamak.lint(twice, KEY, X)
    assert not found.rule("key-reuse") and [lint.rule for lint in found.suppressed] == ["lint.key-reuse"]
    assert "suppressed by comments" in str(found)
    assert tokamak.lint(other, KEY, X).rule("key-reuse")


def test_notes_say_what_is_saved():
    found = Lints([Lint("lint.a", "note", [], 0.0, "does it", saved_us=12.0), Lint("lint.b", "warning", ["f.py:3 (g)"], 5.0, "bad")], 10.0)
    assert str(found).splitlines()[0] == "lint.b  5 us  f.py:3 (g)"
    assert "lint.a  note: saves 12 us  the program" in str(found)
    assert "no lints" in str(Lints([], 1.0))


SCRIPT = """\
import sys
import jax, jax.numpy as jnp

@jax.jit
def step(x):
    return x * 0.5 + 1.0

x = jnp.zeros(4)
for _ in range(30):
    x = step(x)
print("args", sys.argv[1:], float(x[0]))
if "fail" in sys.argv:
    raise SystemExit(3)
"""


def lint(tmp_path, *words, text=SCRIPT):
    path = tmp_path / "script.py"
    path.write_text(text)
    return script("-m", "tokamak", "lint", *(path if word == "SCRIPT" else word for word in words), cwd=tmp_path)


def test_scripts_are_run_and_reported(tmp_path):
    done = lint(tmp_path, "--strict", "SCRIPT", "--steps", "3")
    assert done.returncode == 1 and done.stdout.startswith("args ['--steps', '3'] 2.0\n"), done.stderr
    assert "lint.call-loop" in done.stdout and "script.py:10 (<module>)" in done.stdout and "called 30 times" in done.stdout
    done = lint(tmp_path, "--json", "SCRIPT", "fail")
    assert done.returncode == 2 and "ended with exit code 3" in done.stderr  # and what ran is reported
    data = json.loads(done.stdout)
    assert data["lints"][0]["calls"] == 30 and data["run_us"] > 0
    assert "args ['fail']" in done.stderr


@pytest.mark.parametrize("words, code, says", [
    (["nothing.py"], 2, "cannot read 'nothing.py'"),
    (["--fail-on", "5", "x.py"], 2, "such as 20us or 10%"),
    (["model.hlo"], 2, "expected a Python script"),
])
def test_wrong_uses_are_errors(tmp_path, capsys, words, code, says):
    from tokamak import _lint_cli

    os.chdir(tmp_path)
    try:
        got = _lint_cli.main(["lint", *words])
    except SystemExit as stop:
        got = stop.code
    assert got == code and says in capsys.readouterr().err


def test_costs_have_a_unit_and_are_no_less_than_nothing():
    assert limits("20us") == (20.0, None) and limits("12.5%") == (None, 0.125)
    assert [limits(text) for text in ("5", "us", "-1us", "nan%", "infus")] == [None] * 5


def test_a_script_that_ends_its_process_is_reported(tmp_path):
    done = lint(tmp_path, "SCRIPT", text="import os\nos._exit(9)\n")
    assert done.returncode == 2 and "ended with exit code 9 before it could be reported" in done.stderr
