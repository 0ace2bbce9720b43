"""tokamak.policy and its relatives, tokamak.load_plugin, jax.experimental.fused and lax.composite."""

import subprocess
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tokamak
from conftest import ROOT, python

X = np.linspace(-1, 1, 64 * 256, dtype=np.float32).reshape(64, 256)


def softmax(x):
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def report(f, *args, **options):
    return tokamak.explain(f, *args, tokamak_options=options or None).data


def of_rule(data, rule):
    return [d for d in data["decisions"] if d["rule"] == rule]


def veto_exponentials(move):
    return "veto" if "exponential" in move.producer_ops else None


def test_veto():
    plain = report(softmax, X)
    with tokamak.fusion_policy(veto_exponentials):
        data = report(softmax, X)
        y = jax.jit(lambda x: softmax(x))(X)
    assert len(data["kernels"]) > len(plain["kernels"])
    vetoes = of_rule(data, "policy.veto")
    assert vetoes and "veto_exponentials" in vetoes[0]["because"]
    np.testing.assert_allclose(y, softmax(jax.device_put(X, jax.devices("cpu")[0])), rtol=1e-5)
    assert len(report(softmax, X)["kernels"]) == len(plain["kernels"])


def test_no_opinion_changes_nothing():
    moves = []
    with tokamak.fusion_policy(lambda move: moves.append(move)):
        data = report(softmax, X)
    assert moves and all(isinstance(move, tokamak.Move) for move in moves)
    assert {move.rule.split(".")[0] for move in moves} == {"fusion"}
    assert any("exponential" in move.producer_ops for move in moves)
    assert any("test_policy.py:" in source for move in moves for source in move.sources)
    assert max(move.saved_bytes for move in moves) > 0
    plain = report(softmax, X)
    assert [k["instrs"] for k in data["kernels"]] == [k["instrs"] for k in plain["kernels"]]
    assert not [d for d in data["decisions"] if d["rule"].startswith("policy.")]


def test_accept_against_the_cost():
    """Two independent functions of one array become one kernel only if a policy says so, or the weight is high."""

    def f(x):
        return jnp.sin(x).sum(-1), jnp.exp(x.T) @ jnp.ones((64,), jnp.float32)

    for answer in ("accept", 1e6):
        with tokamak.fusion_policy(lambda move, answer=answer: answer if move.kernels_after < move.kernels_before else None):
            data = report(f, X)
        rule = "policy.accept" if answer == "accept" else "policy.weight"
        assert of_rule(data, rule)
        assert len(data["kernels"]) <= len(report(f, X)["kernels"])


def test_weight_of_zero_is_a_veto():
    with tokamak.fusion_policy(lambda move: 0):
        data = report(softmax, X)
    assert of_rule(data, "policy.veto")


def test_constraints_precede_policies():
    def f(x):
        with tokamak.require_fused():
            return softmax(x)

    with tokamak.fusion_policy(lambda move: "veto"):
        assert len(report(f, X)["kernels"]) == 1

    def g(x):
        with tokamak.never_fuse():
            e = jnp.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    with tokamak.fusion_policy(lambda move: "accept"):
        assert len(report(g, X)["kernels"]) > 1
        assert len(report(softmax, X)["kernels"]) == 1


@pytest.mark.parametrize("answer", ["maybe", -1, float("nan"), True, [], 1j])
def test_bad_answers(answer, capfd):
    with tokamak.fusion_policy(lambda move: answer):
        data = report(softmax, X)
    failed = of_rule(data, "plugin.failed")
    assert len(failed) == 1 and "test_policy" in failed[0]["because"] or "_policy.py" in failed[0]["because"]
    assert len(data["kernels"]) == len(report(softmax, X)["kernels"])


def test_exception_has_its_line(capfd):
    def broken(move):
        return {}["no such key"]

    with tokamak.fusion_policy(broken):
        data = report(softmax, X)
        report(softmax, X)
    (failed,) = of_rule(data, "plugin.failed")
    assert "broken raises KeyError at" in failed["because"] and "test_policy.py:" in failed["because"]
    warnings = [line for line in capfd.readouterr().err.splitlines() if "broken raises" in line]
    assert len(warnings) == 1
    with tokamak.fusion_policy(broken), pytest.raises(tokamak.ExplainError, match="broken raises KeyError"):
        report(softmax, X, tokamak_strict_plugins=True)


def test_order():
    def f(x):
        a = jax.lax.optimization_barrier(jnp.sin(x))
        b = jax.lax.optimization_barrier(jnp.cos(x))
        return a.sum(), b.sum()

    seen = []

    def last_first(step):
        seen.append(step)
        return step.position

    plain = report(f, X)
    with tokamak.ordered_by(last_first):
        data = report(f, X)
        y = jax.jit(lambda x: f(x))(X)
    assert any(step.kind == "kernel" and step.ops for step in seen)
    names = [[k["name"] for k in d["kernels"]] for d in (plain, data)]
    assert sorted(names[0]) == sorted(names[1]) and names[0] != names[1]
    assert of_rule(data, "policy.order")
    np.testing.assert_allclose(y[1], np.cos(X).sum(), rtol=1e-4)


def test_decorators():
    @tokamak.policy
    def mine(move):
        return "veto"

    try:
        assert of_rule(report(softmax, X), "policy.veto")
    finally:
        tokamak.remove_policy(mine)
    assert not of_rule(report(softmax, X), "policy.veto")
    with pytest.raises(ValueError, match="not an active policy"):
        tokamak.remove_policy(mine)
    with pytest.raises(TypeError, match="a policy is a function"):
        tokamak.policy(3)


def test_threads():
    """Several threads compile with one policy, without a deadlock."""
    results = []
    with tokamak.fusion_policy(veto_exponentials):
        threads = [threading.Thread(target=lambda i=i: results.append(float(jax.jit(lambda x: softmax(x) + i)(X).sum()))) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len(results) == 4


def test_load_plugin(tmp_path):
    library = tmp_path / "reciprocal.so"
    command = ["c++", "-std=c++17", "-shared", "-fPIC", f"-I{tokamak.include_dir()}", str(ROOT / "examples/plugins/reciprocal.cc"), "-o", str(library)]
    subprocess.run(command, check=True)
    code = f"""
import tokamak, jax, jax.numpy as jnp
f = lambda x: x / 3 + 1
x = jnp.ones(8)
before = jax.jit(f)(x)
tokamak.load_plugin({str(library)!r})
print(tokamak.plugins()[0]["name"], tokamak.plugins()[0]["passes"])
print("reciprocal.divide" in [d["rule"] for d in tokamak.explain(f, x).data["decisions"]])
print(float(jax.jit(lambda x: f(x))(x)[0]) - float(before[0]) < 1e-6)
try:
    tokamak.load_plugin("/no/such.so")
except tokamak.PluginError as error:
    print(error)
"""
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:3] == ["reciprocal ['reciprocal.pass']", "True", "True"]
    assert "TK6201" in done.stdout


# ---- jax.experimental.fused, lax.composite


def test_fused():
    from jax.experimental.fused import fused

    space = jax.memory.Space.Device

    @fused(out_spaces=(space, space))
    def parts(x, y):
        return jnp.sin(x).sum(-1), jnp.exp(y - y.max(-1, keepdims=True)).sum(-1)

    def f(x):
        a, b = parts(x, x * 2)
        return a + b

    np.testing.assert_allclose(jax.jit(f)(X), np.sin(X).sum(-1) + np.exp(2 * X - 2 * X.max(-1, keepdims=True)).sum(-1), rtol=1e-4)
    data = report(f, X)
    assert of_rule(data, "fused.require")
    assert any({"sine", "exponential"} <= {instr.split(".")[0] for instr in k["instrs"]} or len(k["instrs"]) > 4 for k in data["kernels"])


def test_fused_but_impossible():
    from jax.experimental.fused import fused

    @fused(out_spaces=(jax.memory.Space.Device,))
    def twice(x):
        return (jnp.sort(jnp.sort(x, axis=0), axis=1),)

    with pytest.raises(Exception, match="require_fused 'fused.1'"):
        jax.jit(lambda x: twice(x)[0])(X)


def test_composite():
    norm = jax.lax.composite(lambda x: x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6), name="my.norm")

    def f(x):
        return norm(x) @ jnp.ones((256, 8), jnp.float32)

    seen = []

    def of_norm(move):
        seen.append(move.comes_from("composite:my.norm"))
        return "veto" if seen[-1] and "rsqrt" in move.producer_ops else None

    with tokamak.fusion_policy(of_norm):
        data = report(f, X)
    assert any(seen)
    assert "composite:my.norm" in tokamak.explain(f, X).html()
    assert of_rule(data, "policy.veto")


def test_example():
    done = python((ROOT / "examples/fusion_policy.py").read_text())
    assert done.returncode == 0, done.stderr
    assert "policy.veto" in done.stdout and "the sum of a row is 1.0" in done.stdout
