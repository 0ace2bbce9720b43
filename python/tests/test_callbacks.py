"""pure_callback, io_callback, debug.print, debug.callback, checkify: Python called from compiled programs."""

import gc
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import output, python
from jax.experimental import io_callback
from tokamak import _host_calls


def shape_of(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def test_pure_callback():
    f = jax.jit(lambda x: jax.pure_callback(lambda a: np.sin(a) * 2, shape_of(x), x) + 1)
    x = jnp.linspace(0, 3, 7)
    np.testing.assert_allclose(np.asarray(f(x)), np.sin(np.linspace(0, 3, 7)) * 2 + 1, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(f(x * 2)), np.sin(np.linspace(0, 6, 7)) * 2 + 1, rtol=1e-5)


def test_many_results_of_many_types():
    def host(a, b):
        return {"sum": np.asarray(a + b, np.float32), "any": np.array(True), "i": np.arange(3, dtype=np.int8)}

    shapes = {
        "sum": jax.ShapeDtypeStruct((2, 2), jnp.float32),
        "any": jax.ShapeDtypeStruct((), jnp.bool_),
        "i": jax.ShapeDtypeStruct((3,), jnp.int8),
    }
    got = jax.jit(lambda a, b: jax.pure_callback(host, shapes, a, b))(jnp.ones((2, 2)), jnp.full((2, 2), 2.0))
    assert got["sum"].tolist() == [[3, 3], [3, 3]] and bool(got["any"]) and got["i"].tolist() == [0, 1, 2]


def test_narrow_and_empty_arrays():
    x = jnp.arange(4, dtype=jnp.bfloat16)
    assert jax.jit(lambda x: jax.pure_callback(lambda a: a * 2, shape_of(x), x))(x).tolist() == [0, 2, 4, 6]
    e = jnp.zeros((0, 3))
    assert jax.jit(lambda x: jax.pure_callback(lambda a: a, shape_of(x), x))(e).shape == (0, 3)


def test_in_a_loop_and_under_vmap():
    def body(c, x):
        return c + jax.pure_callback(lambda a: np.float32(a * a), jax.ShapeDtypeStruct((), jnp.float32), x), None

    assert float(jax.jit(lambda xs: jax.lax.scan(body, 0.0, xs)[0])(jnp.arange(5.0))) == 30
    f = jax.vmap(lambda x: jax.pure_callback(np.sin, shape_of(x), x, vmap_method="expand_dims"))
    np.testing.assert_allclose(np.asarray(f(jnp.arange(4.0))), np.sin(np.arange(4)), rtol=1e-6)


def test_eager():
    assert float(jax.pure_callback(lambda a: a + 1, jax.ShapeDtypeStruct((), jnp.float32), jnp.float32(2))) == 3


def test_io_callback_runs_once_a_call_also_when_unread():
    seen = []
    f = jax.jit(lambda x: (io_callback(lambda a: seen.append(float(a)), None, x), x + 1)[1])
    for i in range(3):
        f(jnp.float32(i))
    jax.effects_barrier()
    assert sorted(seen) == [0, 1, 2]


def test_ordered_io_callback_keeps_order():
    seen = []

    def note(a):
        seen.append(int(a))

    @jax.jit
    def f(x):
        io_callback(note, None, x, ordered=True)
        y = jax.lax.fori_loop(0, 3, lambda i, c: (io_callback(note, None, c + i, ordered=True), c + i)[1], x + 10)
        io_callback(note, None, y, ordered=True)
        return y

    for i in range(3):
        f(jnp.int32(100 * i))
    jax.effects_barrier()
    assert seen == [v + 100 * i for i in range(3) for v in (0, 10, 11, 13, 13)]


def test_ordered_callback_with_results():
    counter = iter(range(100))
    f = jax.jit(lambda: [io_callback(lambda: np.int32(next(counter)), jax.ShapeDtypeStruct((), jnp.int32), ordered=True)
                         for _ in range(3)])  # fmt: skip
    assert [int(v) for v in f()] == [0, 1, 2]
    assert [int(v) for v in f()] == [3, 4, 5]


def test_debug_print(capfd):
    @jax.jit
    def f(x):
        jax.debug.print("x is {x}, twice {y}", x=x, y=2 * x)
        jax.debug.print("ordered {}", x, ordered=True)
        return x

    f(jnp.int32(5))
    jax.effects_barrier()
    assert sorted(capfd.readouterr().out.splitlines()) == ["ordered 5", "x is 5, twice 10"]


def test_debug_callback_and_gradients():
    seen = []

    def loss(x):
        jax.debug.callback(lambda a: seen.append(float(a)), x)
        return x**2

    assert float(jax.jit(jax.grad(loss))(3.0)) == 6
    jax.effects_barrier()
    assert seen == [3]


def test_without_a_cpu_device():
    code = """
import jax, jax.numpy as jnp, numpy as np
from jax.experimental import io_callback
jax.debug.print("eager {}", jnp.ones(2))
f = jax.jit(lambda x: jax.pure_callback(lambda a: (np.asarray(a) + 1), jax.ShapeDtypeStruct((2,), jnp.float32), x))
print(f(jnp.ones(2)))
jax.jit(lambda x: jax.debug.print("jitted {}", x))(jnp.int32(4))
jax.jit(lambda x: io_callback(lambda a: print("io", int(a)), None, x, ordered=True))(jnp.int32(7))
"""
    lines = output(code).splitlines()
    assert lines[:2] == ["eager [1. 1.]", "[2. 2.]"] and sorted(lines[2:]) == ["io 7", "jitted 4"]


@pytest.mark.parametrize("platforms", ["tokamak", "tokamak,cpu"])
def test_an_exception_is_logged_without_a_reader(platforms):
    code = """
import jax, numpy as np
def fail(x): raise ValueError('unheard')
f = jax.jit(lambda x: jax.pure_callback(fail, jax.ShapeDtypeStruct((), np.float32), x))
y = f(np.float32(1))
try: y.block_until_ready()
except jax.errors.JaxRuntimeError: print('raised')
"""
    done = python(code, JAX_PLATFORMS=platforms)
    assert "raised" in done.stdout
    assert "jax.pure_callback failed" in done.stderr and "unheard" in done.stderr


def test_an_exception_is_an_exception_here():
    def bad(a):
        raise ValueError("no such luck")

    f = jax.jit(lambda x: jax.pure_callback(bad, shape_of(x), x))
    for _ in range(3):
        with pytest.raises(jax.errors.JaxRuntimeError, match="ValueError: no such luck"):
            jax.block_until_ready(f(jnp.ones(3)))
    assert jnp.ones(3).sum() == 3


@pytest.mark.parametrize("bad", [KeyboardInterrupt, SystemExit, MemoryError])
def test_exceptions_that_are_not_errors(bad):
    def raise_it(a):
        raise bad("ends the call alone")

    with pytest.raises(jax.errors.JaxRuntimeError, match=bad.__name__):
        jax.block_until_ready(jax.jit(lambda x: jax.pure_callback(raise_it, shape_of(x), x))(jnp.ones(3)))


@pytest.mark.parametrize(("value", "complaint"), [
    (np.ones(4, np.float32), "Incorrect output shape for return value #0"),
    (np.ones(3, np.int32), "Incorrect output dtype for return value #0"),
])  # fmt: skip
def test_a_wrong_result(value, complaint):
    f = jax.jit(lambda x: jax.pure_callback(lambda a: value, shape_of(x), x))
    with pytest.raises(jax.errors.JaxRuntimeError, match=complaint):
        jax.block_until_ready(f(jnp.ones(3)))


def test_a_very_long_message():
    def bad(a):
        raise ValueError("x" * 1_000_000 + " the end")

    with pytest.raises(jax.errors.JaxRuntimeError, match="the end"):
        jax.block_until_ready(jax.jit(lambda x: jax.pure_callback(bad, shape_of(x), x))(jnp.ones(3)))


def test_jax_inside_a_callback():
    inner = jax.jit(lambda a: jnp.sum(a @ a.T))

    def host(a):
        return np.asarray(inner(jnp.asarray(a)))

    f = jax.jit(lambda x: jax.pure_callback(host, jax.ShapeDtypeStruct((), jnp.float32), x))
    assert float(f(jnp.ones((50, 50)))) == 50**3


def test_jax_on_tokamak_inside_a_callback():
    code = """
import jax, jax.numpy as jnp, numpy as np
inner = jax.jit(lambda a: jnp.sum(a @ a.T))
f = jax.jit(lambda x: jax.pure_callback(lambda a: np.asarray(inner(jnp.asarray(a))), jax.ShapeDtypeStruct((), jnp.float32), x))
print(float(f(jnp.ones((60, 60)))))
"""
    assert output(code, timeout=60) == "216000.0\n"


def test_callbacks_from_many_threads():
    f = jax.jit(lambda x: jax.pure_callback(lambda a: a + 1, shape_of(x), x))
    wrong = []

    def work(i):
        for j in range(20):
            if float(f(jnp.float32(i + j))) != i + j + 1:
                wrong.append((i, j))

    threads = [threading.Thread(target=work, args=(100 * i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert wrong == []


def test_functions_are_let_go():
    def once(i):
        jax.block_until_ready(jax.jit(lambda x: jax.pure_callback(lambda a: a + i, shape_of(x), x))(jnp.ones(3)))

    once(0)
    jax.clear_caches()
    gc.collect()
    before = _host_calls.count()
    for i in range(5):
        once(i)
    jax.clear_caches()
    gc.collect()
    assert _host_calls.count() <= before


def test_a_function_lives_as_long_as_its_program():
    def make():
        big = np.full(3, 7, np.float32)
        return jax.jit(lambda x: jax.pure_callback(lambda a: a + big, shape_of(x), x)).lower(jnp.ones(3)).compile()

    compiled = make()
    gc.collect()
    assert compiled(jnp.ones(3)).tolist() == [8, 8, 8]


def test_checkify():
    from jax.experimental import checkify

    checked = checkify.checkify(jax.jit(lambda x: (checkify.check(x > 0, "must be positive"), x + 1)[1]))
    error, value = checked(jnp.float32(1))
    assert error.get() is None and float(value) == 2
    error, _ = checked(jnp.float32(-1))
    assert "must be positive" in error.get()


def test_a_program_with_callbacks_is_not_serialized():
    from jax.experimental import serialize_executable

    compiled = jax.jit(lambda x: jax.pure_callback(np.sin, shape_of(x), x)).lower(jnp.ones(3)).compile()
    with pytest.raises(Exception):
        serialize_executable.serialize(compiled)


def test_prints_in_flight_at_exit_are_printed():
    code = """
import jax, jax.numpy as jnp
f = jax.jit(lambda x: jax.debug.print("printed {}", jax.lax.fori_loop(0, 300, lambda i, c: jnp.sin(c) + 1, x)[0], ordered=True))
f(jnp.ones(100))
"""
    assert output(code).startswith("printed 1.9")


def test_a_callback_in_flight_at_exit():
    code = """
import time, jax, jax.numpy as jnp
f = jax.jit(lambda x: jax.pure_callback(lambda a: (time.sleep(0.3), a)[1], jax.ShapeDtypeStruct((3,), jnp.float32), x))
y = f(f(jnp.ones(3)))
"""
    done = python(code)
    assert done.returncode == 0, done.stderr
