"""`tokamak lint --fix`: patches of Python sources, each verified by running it. Scripts run in this process here; test_lint.py
has the command line."""

import json
import subprocess

import jax
import pytest
from conftest import ROOT, script
from tokamak import _lint_cli, _lint_fix, _lint_script


@pytest.fixture
def fix(tmp_path, run_here):
    """fix(text, rule): (the patched text, the Patch, the findings of the rule)."""
    path = tmp_path / "script.py"

    def fixed(text, *rules):
        path.write_text("import jax\nimport jax.numpy as jnp\nimport numpy as np\n" + text)
        lints = _lint_script.lints_of(run_here(path))
        lints = lints.rule(*rules) if rules else lints
        patch = _lint_fix.fix(lints, str(path))
        before = path.read_text()
        patch.apply()
        after = path.read_text()
        assert (before != after) == bool(patch.diff)
        return after, patch, lints

    yield fixed
    jax.config.update("jax_enable_x64", False)


def test_state_is_donated_in_every_form_of_jit(fix):
    text, patch, _ = fix("""\
from functools import partial

@jax.jit
def one(state, x):  # a comment that stays
    return state + x

@partial(jax.jit, static_argnames="n")
def two(x, state, n):
    return state * 0.5 + x * n

def three(state, x):
    return state - x
jitted = jax.jit(three, donate_argnums=())

a = b = c = jnp.ones((128, 128))
x = jnp.full((128, 128), 0.5)
a, b, c = a + 0, b + 0, c + 0
for i in range(10):
    a = one(a, x)
    b = two(x, b, n=2)
    c = jitted(c, x)
print(a.sum(), b.sum(), c.sum())
""", "missing-donation")  # fmt: skip
    assert len(patch.fixed) == 3, patch.summary()
    assert "@jax.jit(donate_argnums=(0,))\ndef one(state, x):  # a comment that stays" in text
    assert '@partial(jax.jit, static_argnames="n", donate_argnums=(1,))' in text
    assert "jax.jit(three, donate_argnums=(0,))" in text


def test_state_that_is_used_again_is_not_donated(fix):
    text, patch, lints = fix("""\
@jax.jit
def step(state):
    return state * 0.5 + 1.0

state = first = jnp.ones((128, 128))
for _ in range(10):
    old, state = state, step(state)
    change = (state - old).sum()  # reads the donated array
print(change)
""", "missing-donation")  # fmt: skip
    assert not patch.diff and not patch.fixed
    assert "deleted" in lints[0].why_no_fix or "fails" in lints[0].why_no_fix


def test_unrolled_loops_become_loops(fix):
    text, patch, _ = fix("""\
@jax.jit
def network(x, weights):
    # all layers
    for w in weights:
        # one layer
        h = x @ w
        x = jnp.tanh(h)  # squashed
    return x

@jax.jit
def indexed(x, layers):
    for i in range(len(layers)):
        x = jnp.tanh(x @ layers[i]["w"] + layers[i]["b"])
    return x

weights = [jnp.eye(16) * (0.5 + 0.01 * i) for i in range(12)]
layers = [{"w": w, "b": w[0]} for w in weights]
y = network(jnp.ones((4, 16)), weights)
z = indexed(jnp.ones((4, 16)), layers)
""", "unrolled-loop")  # fmt: skip
    assert len(patch.fixed) == 2, patch.summary()
    assert """\
    # all layers
    def loop_body(x, w):
        # one layer
        h = x @ w
        x = jnp.tanh(h)  # squashed
        return x, None

    x, _ = jax.lax.scan(loop_body, x, jnp.stack(weights))
    return x
""" in text
    assert "def loop_body(x, layers_i):" in text and 'x @ layers_i["w"]' in text
    assert "-    for w in weights:" in patch.diff and patch.diff.startswith("--- a/")


def test_loops_of_calls_move_into_the_program(fix):
    text, patch, lints = fix("""\
@jax.jit
def step(state, gain):
    new = state - 0.1 * jnp.tanh(state * gain)
    return new, jnp.sum(new)

def train(steps):
    state, losses = jnp.ones(8), []
    losses = []
    for _ in range(steps):
        state, loss = step(state, 0.5)
        losses.append(float(loss))
    return state, losses

state, losses = train(20)
print(f"{losses[-1]:.4f}")
""", "call-loop", "host-round-trip")  # fmt: skip
    assert {lint.rule for lint in patch.fixed} >= {"lint.host-round-trip"}, patch.summary()
    assert "state, losses_rows = jax.lax.scan(loop_body, state, None, length=steps)" in text
    assert "losses = jax.device_get(losses_rows).tolist()" in text
    fixed = patch.fixed[0].fix
    assert fixed["after_us"] < fixed["before_us"] and "arrays equal" in fixed["text"]


@pytest.mark.parametrize("body, why", [
    ("x = step(x)\n    print(x[0])", "called for its effect"),
    ("x = step(x)\n    if x[0] > 100: break", "breaks out of"),
    ("x = step(x)\n    table[i] = x", "in place"),
    ("x, last = step(x), i", "the values differ: last has type int32"),
    ("x = step(x) if i % 2 else step(step(x))", "the patched script fails"),
])  # fmt: skip
def test_loops_of_other_forms_are_left(fix, body, why):
    _, patch, lints = fix(f"""\
@jax.jit
def step(x):
    return x * 0.5 + 1.0

x, table, last = jnp.ones(4), {{}}, 0
for i in range(20):
    {body}
print(x, last)
""", "call-loop")  # fmt: skip
    assert not patch.diff and why in lints[0].why_no_fix, lints[0].why_no_fix


def test_jit_and_invariants_leave_the_loop(fix):
    text, patch, _ = fix("""\
x = jnp.ones(8)
data = jnp.ones((64, 8))

@jax.jit
def gram(data):
    return data.T @ data

total = jnp.zeros(8)
for i in range(12):
    # the same each time
    matrix = gram(data)
    total = total + jax.jit(lambda v: v * 0.5)(matrix[i % 8])
print(total)
""", "jit-in-loop", "loop-invariant")  # fmt: skip
    assert len(patch.fixed) == 2, patch.summary()
    assert "# the same each time\nmatrix = gram(data)\n" in text and "jitted = jax.jit(lambda v: v * 0.5)\nfor i in range(12):\n" in text
    assert "    total = total + jitted(matrix[i % 8])" in text


def test_a_closure_over_the_loop_is_not_hoisted(fix):
    _, patch, lints = fix("""\
x = jnp.ones(8)
for i in range(10):
    x = jax.jit(lambda v: v * 0.5 + i)(x)
print(x)
""", "jit-in-loop")  # fmt: skip
    assert not patch.diff and "what the loop changes" in lints[0].why_no_fix


def test_numbers_keep_the_type_of_arrays(fix):
    text, patch, _ = fix("""\
jax.config.update("jax_enable_x64", True)
SCALE = np.float64(0.25)

@jax.jit
def f(x):
    y = x * SCALE  # f64
    return y

@jax.jit
def g(x):
    return x / np.sqrt(64)

print(float(f(jnp.ones((64, 64), jnp.float32)).sum()), float(g(jnp.ones((64, 64), jnp.bfloat16)).sum()))
""", "float64", "promotion")  # fmt: skip
    assert "SCALE = float(np.float64(0.25))" in text and "x / float(np.sqrt(64))" in text, patch.summary()


def test_gathers_and_one_hot_products_are_written_as_they_are_meant(fix):
    if _lint_cli._unknown_rule(["gather-is-slice", "one-hot-matmul"]):
        pytest.skip("this library has no such rules")
    text, patch, _ = fix("""\
@jax.jit
def head(x):
    return x[jnp.arange(3, 515)] * 2.0  # rows

@jax.jit
def columns(x):
    return jnp.take(x, jnp.arange(256), axis=1) + 1.0

@jax.jit
def embed(tokens, table):
    return jnp.matmul(jax.nn.one_hot(tokens, 512), table)

x = jnp.linspace(0.0, 1.0, 1024 * 512).reshape(1024, 512)
y, z, e = head(x), columns(x), embed((jnp.arange(256) * 7) % 512, x[:512])
""", "gather-is-slice", "one-hot-matmul")  # fmt: skip
    assert "x[3:515] * 2.0  # rows" in text and "jax.lax.slice_in_dim(x, 0, 256, axis=1) + 1.0" in text, patch.summary()
    assert 'return jnp.take(table, tokens, axis=0, mode="fill", fill_value=0)' in text


def test_random_scripts_are_not_compared(fix):
    _, patch, lints = fix("""\
@jax.jit
def step(x):
    return x * 0.99 + 1.0

x = jnp.float32(np.random.rand())
for _ in range(20):
    x = step(x)
print("done")
""", "call-loop")  # fmt: skip
    assert not patch.diff and "different values" in lints[0].why_no_fix


def test_the_command_writes_and_applies_patches(tmp_path):
    path = tmp_path / "loop.py"
    source = (ROOT / "examples" / "lint" / "jit_in_loop.py").read_text()
    path.write_text(source)
    done = script("-m", "tokamak", "lint", "--rules", "jit-in-loop", "--fix=lint.patch", "--json", path.name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lint = json.loads(done.stdout)["lints"][0]
    assert lint["fix"]["diff"] == (tmp_path / "lint.patch").read_text() and path.read_text() == source
    subprocess.run(["patch", "-p1", "-i", "lint.patch"], cwd=tmp_path, check=True, capture_output=True)
    assert "jitted = jax.jit(" in path.read_text()
