"""tokamak.explain() and the fusion constraint scopes."""

import json

import jax
import jax.numpy as jnp
import pytest

import tokamak


def step(w, x):
    def loss(w):
        return jnp.mean(jnp.tanh(x @ w) ** 2)

    value, gradient = jax.value_and_grad(loss)(w)
    return w - 0.1 * gradient, value


W, X = jnp.ones((16, 8)), jnp.ones((4, 16))


def test_explain_reports_kernels_phases_and_lines():
    explanation = tokamak.explain(step, W, X)
    assert set(explanation.data["phases"]) <= {"forward", "backward", "update"} and "update" in explanation.data["phases"]
    lines = [line for kernel in explanation.data["kernels"] for line in kernel["lines"]]
    assert any("test_explain.py" in line for line in lines)
    text = str(explanation)
    assert "bytes moved" in text and "unfused" in text and "pays " in text
    assert explanation.data["fused"]["steps"] < explanation.data["unfused"]["steps"]
    assert any(decision["verdict"] == "accepted" for decision in explanation.data["decisions"])
    assert "by fusion." in explanation.decisions()
    assert explanation.dot().startswith("digraph")
    assert "kernel IR" in explanation.kernel(explanation.data["kernels"][0]["name"])


def test_explain_writes_pages(tmp_path):
    explanation = tokamak.explain(step, W, X)
    page = explanation.html()
    report = json.loads(page.split('<script id="report" type="application/json">')[1].split("</script>")[0])
    assert [kernel["name"] for kernel in report["kernels"]] == [kernel["name"] for kernel in explanation.data["kernels"]]
    assert any("jnp.tanh" in text for lines in report["sources"].values() for _, text in lines)
    explanation.html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    shown = explanation._repr_html_()
    assert shown.startswith("<iframe") and "<script" not in shown
    both = tokamak.explain(step, W, X, tokamak_target="host,h200")
    assert both._repr_html_() is None
    with pytest.raises(tokamak.ExplainError, match="one target"):
        both.html()


def test_explain_takes_jitted_functions_and_options():
    jitted = jax.jit(lambda x, n: jnp.tanh(x) * n, static_argnums=1)
    none = tokamak.explain(jitted, X, 2, tokamak_options={"tokamak_fusion": "none"})
    assert len(none.data["kernels"]) > len(tokamak.explain(jitted, X, 2).data["kernels"])
    assert "cuda" in tokamak.explain(jitted, X, 2, tokamak_target="h200").kernel(1).lower()
    assert "arrays on the device that runs it" in str(tokamak.explain(jitted, X, 2, tokamak_target="host,h200"))


def test_lints_are_reported():
    assert [lint["rule"] for lint in tokamak.explain(jnp.tanh, X).lints] == ["lint.dispatch-bound"]


@pytest.mark.parametrize("more, says", [
    ({"tokamak_target": "tpu"}, "host,h200"),
    ({"tokamak_options": {"tokamak_fusion": "most"}}, "none of none, rules, greedy and search"),
    ({"tokamak_options": {"tokamak_fusin": "none"}}, "did you mean 'tokamak_fusion'"),
])
def test_invalid_requests_are_errors(more, says):
    with pytest.raises(tokamak.ExplainError, match=says):
        tokamak.explain(jnp.tanh, X, **more)
    with pytest.raises(tokamak.ExplainError, match="did you mean"):
        tokamak.explain(jnp.tanh, X).kernel("no_such_one")


def test_debug_explains(capsys):
    with tokamak.debug(explain=True):
        jax.jit(lambda x: jnp.tanh(x) * 3)(X).block_until_ready()
    explanation = capsys.readouterr().err
    assert "bytes moved" in explanation and "test_explain.py" in explanation


def kernels(f, *args):
    return tokamak.explain(f, *args).data["kernels"]


def test_never_fuse_keeps_apart():
    def f(x):
        x = jnp.sin(x)
        with tokamak.never_fuse():
            x = jnp.tanh(x)
        return jnp.cos(x)

    assert [kernel["ops"] for kernel in kernels(f, X)] == [1, 1, 1]
    assert len(kernels(lambda x: jnp.cos(jnp.tanh(jnp.sin(x))), X)) == 1
    assert jnp.allclose(jax.jit(f)(X), jnp.cos(jnp.tanh(jnp.sin(X))), atol=1e-5)


def test_require_fused_holds_or_says_why():
    def holds(x):
        with tokamak.require_fused("norm"):
            return x / jnp.sqrt(jnp.sum(x * x, axis=1, keepdims=True))

    assert len(kernels(holds, X)) == 1
    assert jnp.allclose(jax.jit(holds)(X), 0.25)

    def cannot(x):
        with tokamak.require_fused("sorted"):
            return jnp.tanh(jnp.sort(x, axis=0))

    with pytest.raises(jax.errors.JaxRuntimeError, match="require_fused 'sorted' cannot hold(.|\n)*test_explain.py"):
        jax.jit(cannot, compiler_options={"tokamak_backend": "cpu"})(X)
    with pytest.raises(ValueError, match="plain word"):
        tokamak.fuse("a/b")
    with pytest.raises(TypeError, match="plain word, or a function"):
        tokamak.fuse(3)


def test_pins_decorate_functions():
    @tokamak.never_fuse
    def middle(x):
        return jnp.tanh(x)

    assert middle.__name__ == "middle"
    assert [kernel["ops"] for kernel in kernels(lambda x: jnp.cos(middle(jnp.sin(x))), X)] == [1, 1, 1]
    sort = tokamak.require_fused(lambda x: jnp.tanh(jnp.sort(x, axis=0)))
    with pytest.raises(jax.errors.JaxRuntimeError, match="require_fused(.|\n)*cannot hold"):
        jax.jit(sort, compiler_options={"tokamak_backend": "cpu"})(X)


def test_pins_as_options():
    f = jax.jit(lambda x: jnp.cos(jnp.tanh(x)))
    line = f.__wrapped__.__code__.co_firstlineno
    explanation = tokamak.explain(f, X, tokamak_options={"tokamak_never_fuse": "tanh.1"})
    assert len(explanation.data["kernels"]) == 2
    explanation = tokamak.explain(f, X, tokamak_options={"tokamak_fusion": "none", "tokamak_fuse": f"test_explain.py:{line}"})
    assert len(explanation.data["kernels"]) == 1
    with pytest.raises(tokamak.ExplainError, match="no instruction has the name 'tan'; did you mean tanh.1"):
        tokamak.explain(f, X, tokamak_options={"tokamak_never_fuse": "tan"})
