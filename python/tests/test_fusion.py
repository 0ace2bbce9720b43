"""tokamak_fusion and tokamak_lift through JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokamak


def softmax_of_both(x, y):
    both = jnp.concatenate([x, y])
    return jax.nn.softmax(both * 2), jnp.tanh(both)


@pytest.mark.parametrize("fusion", ["none", "rules", "greedy", "search"])
def test_each_way_computes_the_same(fusion):
    x, y = jnp.arange(24.0).reshape(4, 6), jnp.ones((4, 6))
    expected = jax.jit(softmax_of_both, compiler_options={"tokamak_backend": "interp"})(x, y)
    options = {"tokamak_backend": "cpu", "tokamak_fusion": fusion, "tokamak_lift": "concat-multi-user"}
    for got, want in zip(jax.jit(softmax_of_both, compiler_options=options)(x, y), expected):
        np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("option, value, says", [
    ("tokamak_fusion", "most", "none of none, rules, greedy and search"),
    ("tokamak_schedule", "fastest", "expected 'cheapest', 'preferred' or KERNEL=SCHEDULE"),
    ("tokamak_schedule", "y=rows tiles=2x1x8", "there is no field 'tiles'; did you mean 'tile'"),
    ("tokamak_lift", "concat-multi-users", "did you mean 'xla.concat-multi-user'"),
    ("tokamak_lift", "cycle", "xla.cycle is a legality rule, which cannot be disabled"),
])
def test_other_words_are_rejected(option, value, says):
    with pytest.raises(jax.errors.JaxRuntimeError, match=says):
        jax.jit(lambda x: x + 1, compiler_options={option: value})(jnp.ones(3))


def test_a_forced_schedule_is_used():
    def f(x):
        return x.sum(0)

    x = np.arange(64 * 32, dtype=np.int32).reshape(64, 32)
    kernel = tokamak.explain(f, x).data["kernels"][0]
    assert kernel["generator"] == "columns"
    schedule = "columns tile=1x16x1 inner=1x8 vector=4 unroll=2 staging=memory"
    for text in (f"{kernel['name']}={schedule}", f"cheapest;{kernel['name']}={schedule}"):
        options = {"tokamak_schedule": text}
        assert tokamak.explain(f, x, tokamak_options=options).data["kernels"][0]["schedule"] == schedule
        np.testing.assert_array_equal(jax.jit(f, compiler_options={"tokamak_backend": "cpu", **options})(x), x.sum(0))


def planned_by(options, capsys):
    """The rule that names the planner."""
    f = jax.jit(lambda x: jnp.tanh(x) * 3 + jnp.sum(x), compiler_options={"tokamak_backend": "cpu", **options})
    x = jnp.ones((64, 64))
    with tokamak.debug(explain="decisions"):
        f(x).block_until_ready()
    explanation = capsys.readouterr().err
    return "search" if "fusion.search" in explanation else "greedy" if "fusion.greedy" in explanation else explanation


@pytest.mark.parametrize("effort, by", [(-1.0, "greedy"), (-0.25, "greedy"), (0.0, "search"), (0.25, "search"), (1.0, "search")])
def test_effort_of_jax_is_effort_of_ours(effort, by, capsys):
    assert planned_by({"exec_time_optimization_effort": effort}, capsys) == by
    jax.config.update("jax_exec_time_optimization_effort", effort)
    try:
        assert planned_by({}, capsys) == by
        # The option of a single function has precedence.
        assert planned_by({"tokamak_effort": "fast"}, capsys) == "greedy"
        assert planned_by({"tokamak_effort": "default"}, capsys) == "search"
    finally:
        jax.config.update("jax_exec_time_optimization_effort", 0.0)
