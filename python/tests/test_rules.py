"""User rewrite rules: registration, checks, matching in jitted programs, scopes, failures, and random programs."""
import contextlib
import os
import random
import subprocess
import warnings

import jax
import jax.experimental
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import ROOT

import tokamak


@contextlib.contextmanager
def registered(pattern, replacement, **options):
    rule = tokamak.rule(pattern, **{"when_cheaper": False, "name": "r", **options})(replacement)
    try:
        yield rule
    finally:
        rule.remove()


def decisions(f, *args, name="r"):
    return [d for d in tokamak.explain(f, *args).data["decisions"] if d["rule"] == f"user.{name}"]


def fired(f, *args, name="r"):
    return sum(d["verdict"] == "accepted" for d in decisions(f, *args, name=name))


def slow_silu(x):
    return x / (1 + jnp.exp(-x))


def shifted_sinh(x):
    """Within a wide tolerance, but visibly another function."""
    return (jnp.exp(x) - jnp.exp(-x)) / 2 + 0.25


def x_of(*shape, dtype=np.float32):
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 4, 5)])
def test_any_shape(shape):
    with registered(slow_silu, jax.nn.silu):
        assert fired(lambda x: slow_silu(x + 1) * 2, x_of(*shape)) == 1


def test_jit_recompiles_with_and_without():
    f = jax.jit(lambda x: slow_silu(x).sum(0))
    x = x_of(16, 8)
    before = f(x)
    with registered(slow_silu, lambda x: jax.nn.silu(x) + 0 * x, tolerance=1e-5, name="planted") as rule:
        np.testing.assert_allclose(f(x), before, rtol=1e-5)
        assert fired(f, x, name="planted") == 1
        rule.remove()
        assert fired(f, x, name="planted") == 0
        rule.restore()
        assert fired(f, x, name="planted") == 1
    assert fired(f, x, name="planted") == 0


def test_compiled_program_really_changes():
    """A rule that changes values within its tolerance shows in the results, and removing it brings the old ones back."""
    f = jax.jit(lambda x: jnp.sinh(x) * 2)
    x = x_of(32)
    plain = np.asarray(f(x))
    with registered(jnp.sinh, shifted_sinh, tolerance=0.5, domain=(-50, 50)):
        np.testing.assert_allclose(f(x), plain + 0.5, rtol=1e-5)
        with tokamak.rules():
            np.testing.assert_array_equal(f(x), plain)
        np.testing.assert_allclose(f(x), plain + 0.5, rtol=1e-5)
    np.testing.assert_array_equal(f(x), plain)


def test_scope():
    with registered(jnp.sinh, shifted_sinh, tolerance=0.5, domain=(-50, 50)) as rule:
        rule.remove()
        f = lambda x: jnp.sinh(x)
        x = x_of(4)
        assert fired(f, x) == 0
        with tokamak.rules(rule):
            assert fired(f, x) == 1
            np.testing.assert_allclose(jax.jit(f)(x), np.sinh(x) + 0.25, rtol=1e-5)
        np.testing.assert_allclose(jax.jit(f)(x), np.sinh(x), rtol=1e-5)


def test_helpers_that_jax_calls():
    """jnp.where, jax.nn functions and user's jitted helpers are calls in the program; patterns see through them."""

    def pattern(x):
        return jnp.where(x > 0, x, 0.2 * x)

    @jax.jit
    def layer(x):
        return pattern(x) + jax.nn.relu(x)

    with registered(pattern, lambda x: jnp.maximum(x, 0.2 * x)):
        assert fired(lambda x: layer(x * 3).sum(), x_of(6, 6)) == 1


def test_loops_and_branches():
    def f(x, n):
        x = jax.lax.fori_loop(0, 5, lambda i, c: slow_silu(c) + i, x)
        x = jax.lax.cond(n > 0, lambda c: slow_silu(c) * 3, lambda c: c - 1, x)
        return jax.lax.scan(lambda c, y: (slow_silu(c + y), c), x, jnp.ones((4, 3)))

    with registered(slow_silu, jax.nn.silu):
        assert fired(f, x_of(3), np.int32(1)) == 3
        got = jax.jit(f)(x_of(3), np.int32(1))
    want = jax.jit(f)(x_of(3), np.int32(1))
    np.testing.assert_allclose(got[1], want[1], rtol=2e-5)


def test_extents_in_constants():
    """A mean divides by a constant that depends on the extent: the rule is traced again at the shapes of the program."""

    def norm(x):
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)

    def once(x):
        m = x.mean(-1, keepdims=True)
        return (x - m) * jax.lax.rsqrt(jnp.maximum((x * x).mean(-1, keepdims=True) - m * m, 0) + 1e-5)

    with registered(norm, once, tolerance=1e-2, domain=(-2, 2)):
        for shape in [(4, 8), (7, 24), (2, 3, 10)]:
            assert fired(lambda x: norm(x) + 1, x_of(*shape)) == 1


def test_matrix_products_by_cost():
    with registered(lambda a, b, v: (a @ b) @ v, lambda a, b, v: a @ (b @ v), when_cheaper=True, tolerance=1e-4,
                    examples=[((6, 7), (7, 5), (5,))]):  # fmt: skip
        f = lambda a, b, v: (a @ b) @ v
        (big,) = decisions(f, x_of(256, 256), x_of(256, 256), x_of(256))
        assert big["verdict"] == "accepted" and 0 < big["after_us"] < big["before_us"] / 2
    costly = lambda x: jnp.log(jnp.exp(x) * jnp.exp(x))
    with registered(lambda x: x * 2, costly, when_cheaper=True, tolerance=1e-5, domain=(-5, 5)):
        (costlier,) = decisions(lambda x: x * 2, x_of(256, 256))
        assert costlier["verdict"] == "rejected" and "not cheaper" in costlier["because"]
        assert 0 < costlier["before_us"] <= costlier["after_us"]


def test_rules_of_users():
    """What people write rules for: an inverse that is multiplied, a sorted array's last element, a one-hot product."""
    rows, index = jax.ShapeDtypeStruct((16, 5), jnp.float32), jax.ShapeDtypeStruct((7,), jnp.int32)
    a = x_of(32, 32) + 8 * np.eye(32, dtype=np.float32)
    for pattern, replacement, examples, args in (
        (lambda x, a: x @ jnp.linalg.inv(a), lambda x, a: jnp.linalg.solve(a.T, x.T).T, [((5, 4), (4, 4))], (x_of(3, 32), a)),
        (lambda x: jnp.sort(x)[..., -1], lambda x: x.max(-1), None, (x_of(64, 256),)),
        (lambda x, i: jax.nn.one_hot(i, 16) @ x, lambda x, i: jnp.where((i[:, None] >= 0) & (i[:, None] < 16), x[jnp.clip(i, 0, 15)], 0),
         [(rows, index)], (x_of(16, 64), np.arange(1000, dtype=np.int32) % 20)),
    ):  # fmt: skip
        f = lambda *args: jnp.tanh(pattern(*args))
        want = jax.jit(f)(*args)
        with registered(pattern, replacement, examples=examples, tolerance=1e-2, when_cheaper=True):
            (record,) = decisions(f, *args)
            assert record["verdict"] == "accepted" and record["after_us"] < record["before_us"]
            np.testing.assert_allclose(jax.jit(f)(*args), want, atol=1e-5)


def test_types_are_those_of_the_examples():
    bf16 = jax.ShapeDtypeStruct((4, 8), jnp.bfloat16)
    with registered(slow_silu, jax.nn.silu, examples=[(bf16,)], tolerance=1e-2):
        assert fired(slow_silu, jnp.ones((5,), jnp.bfloat16)) == 1
        assert fired(slow_silu, x_of(5)) == 0


def test_kernels_keep_the_lines_of_what_they_replace():
    with registered(slow_silu, jax.nn.silu):
        (kernel,) = tokamak.explain(lambda x: slow_silu(x) + 1, x_of(64)).data["kernels"]
        line = slow_silu.__code__.co_firstlineno + 1
        assert any(f"test_rules.py:{line} (slow_silu)" in text for text in kernel["lines"]), kernel["lines"]


def test_when_and_priority():
    seen = []

    def when(match):
        seen.append((match.x.shape, match.x.type, match["x"].users, match.result.shape, match.x.sources))
        return match.x.size > 10

    with registered(slow_silu, jax.nn.silu, when=when):
        assert fired(lambda x, y: (slow_silu(x), slow_silu(y)), x_of(4), x_of(4, 4)) == 1
    assert {s[0] for s in seen} == {(4,), (4, 4)} and seen[0][1] == "f32"
    with registered(slow_silu, jax.nn.silu, name="low"), registered(slow_silu, jax.nn.silu, name="high", priority=5):
        assert fired(slow_silu, x_of(4), name="high") == 1
        assert fired(slow_silu, x_of(4), name="low") == 0


def test_when_raises():
    def when(match):
        raise KeyError("no such layer")

    with registered(slow_silu, jax.nn.silu, when=when), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x = x_of(5)
        np.testing.assert_allclose(jax.jit(slow_silu)(x), x / (1 + np.exp(-x)), rtol=1e-5)
        (left_out,) = decisions(slow_silu, x)
    assert left_out["verdict"] == "rejected" and "TK3012" in left_out["because"]
    texts = [str(w.message) for w in caught if w.category is tokamak.RuleWarning]
    assert texts and "no such layer" in texts[0] and "test_rules.py" in texts[0]


def test_rules_that_undo_each_other():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with registered(lambda x, y: x - y, lambda x, y: x + -y, name="there"):
            with registered(lambda x, y: x + -y, lambda x, y: x - y, name="back"):
                f = lambda x, y: x - y
                assert fired(f, x_of(3), x_of(3), name="there") == 0
                np.testing.assert_array_equal(jax.jit(f)(x_of(3), 2 * x_of(3)), -x_of(3))
    texts = [str(w.message) for w in caught if w.category is tokamak.RuleWarning]
    assert any("TK3011" in t and "there" in t and "back" in t for t in texts)


def test_growing_rule():
    """A rule whose result matches again at every turn, though it does not contain the pattern at first sight."""
    when = lambda match: True
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with registered(jnp.tan, lambda x: jnp.tan(x) + 0 * x, when=when):
            assert fired(jnp.tan, x_of(3)) == 0
    assert any("TK3011" in str(w.message) for w in caught)


BAD = {
    "values": ("TK3008", slow_silu, lambda x: jax.nn.gelu(x), {}),
    "close": ("TK3008", jnp.tanh, lambda x: jnp.sinh(x) / jnp.cosh(x) * 1.00001, {"domain": (-5, 5)}),
    "one input": ("TK3008", jnp.abs, lambda x: jnp.where(x == 1, 2.0, jnp.maximum(x, -x)), {}),
    "large": ("TK3008", lambda x: x * 2, lambda x: jnp.minimum(x + x, 1e20), {}),
    "nan": ("TK3008", lambda x: x + 1, lambda x: jnp.where(jnp.isnan(x), 0.0, x - (-1)), {"nonfinite": True}),
    "integers": ("TK3008", lambda x: x // 2, lambda x: jax.lax.div(x, 2), {"examples": [(np.int32(1),)]}),
    "shapes": ("TK3007", jnp.tanh, lambda x: x.sum(), {"examples": [((4,),)]}),
    "types": ("TK3007", jnp.tanh, lambda x: jnp.tanh(x).astype(jnp.bfloat16), {}),
    "unused": ("TK3009", lambda x, y: x * 2, lambda x, y: x + x, {}),
    "variable": ("TK3009", lambda x: x, lambda x: x + 0, {}),
    "contains": ("TK3011", jnp.tanh, lambda x: jnp.tanh(x) * 1, {}),
    "name": ("TK3013", jnp.tanh, lambda x: -jnp.tanh(-x), {"name": "a b"}),
    "callback": ("TK3010", jnp.tanh, lambda x: jax.experimental.io_callback(np.tanh, x, x), {}),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_rules_are_errors(kind):
    code, pattern, replacement, options = BAD[kind]
    with pytest.raises(tokamak.RuleError) as caught:
        with registered(pattern, replacement, **options):
            pass
    assert caught.value.code == code and "test_rules.py" in str(caught.value), caught.value
    if kind == "values":
        assert "the pattern gives" in str(caught.value) and "args0" not in str(caught.value)
    assert fired(pattern, *([x_of(4)] * (2 if kind == "unused" else 1))) == 0


def test_good_rules_are_accepted():
    """Rules that differ by rounding, in overflow, or outside of a declared domain."""
    for pattern, replacement, options in (
        (lambda x: 0.5 * x * (1 + jnp.tanh(0.7978845608 * (x + 0.044715 * x**3))),
         lambda x: x * jax.nn.sigmoid(1.5957691216 * (x + 0.044715 * x**3)), {}),
        (lambda x: x / jnp.sqrt((x * x).sum(-1, keepdims=True)), lambda x: x * jax.lax.rsqrt((x * x).sum(-1, keepdims=True)), {}),
        (lambda x: jnp.log(1 + jnp.exp(x)), lambda x: jax.nn.softplus(x), {}),
        (lambda x, y: jnp.log(x) + jnp.log(y), lambda x, y: jnp.log(x * y), {"domain": (0.1, 50)}),
        (lambda x: x * 2, lambda x: x << 1, {"examples": [(np.arange(4, dtype=np.int32),)]}),
        (lambda x, y: x * y + x, lambda x, y: x * (y + 1), {"tolerance": 1e-5}),
    ):  # fmt: skip
        with registered(pattern, replacement, **options):
            pass


def _tree(rng, depth, leaves):
    """A random elementwise function as a nested tuple."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(leaves)
    if rng.random() < 0.4:
        return (rng.choice(["tanh", "neg", "silu", "abs"]), _tree(rng, depth - 1, leaves))
    return (rng.choice(["add", "mul", "max", "hypot"]), _tree(rng, depth - 1, leaves), _tree(rng, depth - 1, leaves))


def _eval(tree, env, rng, counts):
    if isinstance(tree, str):
        return env[tree]
    name, *parts = tree
    parts = [_eval(p, env, rng, counts) for p in parts]
    swap = rng.random() < 0.5
    if name == "silu":  # planted, with its sum in either order
        (x,) = parts
        counts["silu"] += 1
        return x / (jnp.exp(-x) + 1) if swap else x / (1 + jnp.exp(-x))
    if name == "hypot":  # planted, with sums and products in either order
        x, y = parts
        counts["hypot"] += 1
        return jnp.sqrt(y * y + x * x + 1) if swap else jnp.sqrt(1 + (x * x + y * y))
    if len(parts) == 2 and swap:
        parts.reverse()
    return {"tanh": jnp.tanh, "neg": jnp.negative, "abs": jnp.abs, "add": jnp.add, "mul": jnp.multiply, "max": jnp.maximum}[name](*parts)


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed):
    """Instances planted into random elementwise programs, exchanged and at other shapes, are all found."""
    rng = random.Random(seed)
    shape = rng.choice([(3,), (2, 5), (2, 3, 2)])
    tree = ("add", ("silu", _tree(rng, 5, ["x", "y"])), _tree(rng, 5, ["x", "y"]))
    counts = {"silu": 0, "hypot": 0}

    def f(x, y):
        counts.update(silu=0, hypot=0)
        return _eval(tree, {"x": x, "y": y}, random.Random(seed), counts)

    x, y = x_of(*shape), x_of(*shape)[::-1].copy() + 1
    options = {"when_cheaper": False, "tolerance": 1e-5, "domain": (-1e3, 1e3)}
    silu = tokamak.rule(slow_silu, name="silu", **options)(lambda x: x * jax.nn.sigmoid(x))
    hypot = tokamak.rule(lambda x, y: jnp.sqrt(x * x + y * y + 1), name="hypot", **options)(
        lambda x, y: jnp.exp(0.5 * jnp.log(x * x + y * y + 1))
    )
    try:
        rules = [d["rule"] for d in tokamak.explain(f, x, y).data["decisions"] if d["verdict"] == "accepted"]
        assert {name: rules.count(f"user.{name}") for name in counts} == counts
        with_rules = jax.jit(f)(x, y)
    finally:
        silu.remove()
        hypot.remove()
    np.testing.assert_allclose(with_rules, jax.jit(f)(x, y), rtol=1e-3, atol=1e-4)


RULE_FILE = """
module @there attributes {tokamak.always = true} {
  func.func @pattern(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.subtract %x, %y : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @replacement(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.negate %y : tensor<4xf32>
    %1 = stablehlo.add %x, %0 : tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
"""


def test_command_line(tmp_path):
    tool = os.environ.get("TOKAMAK_TOOL", str(ROOT / "build/bin/tokamak"))
    there = tmp_path / "there.mlir"
    there.write_text(RULE_FILE)
    back = tmp_path / "back.mlir"
    back.write_text(RULE_FILE.replace("@there", "@back").replace("@pattern", "@p").replace("@replacement", "@pattern").replace("@p(", "@replacement("))
    program = tmp_path / "f.mlir"
    program.write_text("func.func @main(%x: tensor<2x2xf32>, %y: tensor<2x2xf32>) -> tensor<2x2xf32> {\n"
                       "  %0 = stablehlo.subtract %x, %y : tensor<2x2xf32>\n  return %0 : tensor<2x2xf32>\n}\n")  # fmt: skip
    run = lambda *words: subprocess.run([tool, *map(str, words)], capture_output=True, text=True, timeout=60, check=False)
    done = run("opt", "--passes=apply-user-rules", "--user-rules", there, program, "--decisions")
    assert done.returncode == 0 and "negate" in done.stdout and "user.there" in done.stderr, done.stderr
    done = run("run", "--user-rules", there, "--seed", "1", program, "--explain_fusion_decisions")
    assert done.returncode == 0, done.stderr
    both = run("explain", "--user-rules", there, "--user-rules", back, program, "--json")
    assert both.returncode == 0 and "left out: TK3011" in both.stdout
    assert "error[TK3011]" in both.stderr and "there, back" in both.stderr
