"""Every failure is a Python exception; the process and the client survive it."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import python


@pytest.fixture(autouse=True)
def works_afterwards():
    yield
    assert jax.jit(lambda x: x * 2)(jnp.arange(3.0)).tolist() == [0, 2, 4]


def test_use_after_delete():
    x = jnp.arange(4.0)
    x.delete()
    for use in (lambda: x + 1, lambda: np.asarray(x), lambda: jax.jit(jnp.sin)(x), lambda: jax.block_until_ready(x)):
        with pytest.raises((RuntimeError, ValueError), match="deleted"):
            use()
    x.delete()  # a second call is allowed


def test_delete_while_it_is_being_computed():
    f = jax.jit(lambda x: jax.lax.fori_loop(0, 300, lambda i, c: jnp.sin(c) + 1, x))
    x = f(jnp.ones(50))
    y = x + 1
    x.delete()
    assert np.isfinite(np.asarray(y)).all()


def test_an_unknown_custom_call():
    call = jax.ffi.ffi_call("nobody_knows_this", jax.ShapeDtypeStruct((3,), jnp.float32))
    with pytest.raises(jax.errors.JaxRuntimeError, match="nobody_knows_this"):
        jax.block_until_ready(jax.jit(call)(jnp.ones(3)))


def test_more_memory_than_there_is():
    with pytest.raises((jax.errors.JaxRuntimeError, MemoryError)):
        jax.block_until_ready(jax.jit(lambda: jnp.zeros((1 << 22, 1 << 22), jnp.float32))())


def test_no_memory_on_a_thread_of_the_library():
    """The interpreter's copy of an argument does not fit: an exception, not the end of the process."""
    code = """
import resource, jax, jax.numpy as jnp, numpy as np
f = jax.jit(lambda x: jax.lax.fori_loop(0, 2, lambda i, c: c + 1, x))
small, large = jnp.zeros(8, jnp.int8), jnp.zeros(1 << 28, jnp.int8)
f(small).block_until_ready(), jax.block_until_ready(large)
compiled = f.lower(large).compile()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limits = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used + (400 << 20), limits[1]))
try:
    compiled(large).block_until_ready()
    print("it fits")
except jax.errors.JaxRuntimeError as error:
    print("TK5002" in str(error))
resource.setrlimit(resource.RLIMIT_AS, limits)
print(np.asarray(f(small)).tolist())
"""
    done = python(code, TOKAMAK_DEVICE="interp")
    assert (done.returncode, done.stdout) == (0, "True\n[2, 2, 2, 2, 2, 2, 2, 2]\n"), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tokamak_no_such_option", "No such compile option: 'tokamak_no_such_option'"),
        ("tokamak_strikt", "'tokamak_strikt'; did you mean 'tokamak_strict'"),
        ("invalid_key", "No such compile option: 'invalid_key'; options of Tokamak begin with tokamak_"),
    ],
)
def test_an_unknown_option(name, said):
    with pytest.raises(jax.errors.JaxRuntimeError, match=said):
        jax.jit(lambda x: x + 1, compiler_options={name: True})(jnp.ones(3))


def test_options_of_xla_are_left_alone():
    options = {"xla_embed_ir_in_executable": True, "exec_time_optimization_effort": 0.5}
    assert jax.jit(lambda x: x + 1, compiler_options=options)(1.0) == 2


def test_multi_device_shardings_report_what_is_missing():
    code = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()), ("x",))
x = jax.device_put(np.arange(8., dtype=np.float32), NamedSharding(mesh, P("x")))
print(np.asarray(x).tolist())
try:
    print(jax.jit(lambda x: x + x.sum())(x))
except jax.errors.JaxRuntimeError as error:
    print("rejected:", "TK6108" in str(error))
print(jax.jit(lambda x: x + 1)(jnp.float32(1)))
"""
    done = python(code, TOKAMAK_NUM_DEVICES=2)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == str([float(i) for i in range(8)]) and lines[-1] == "2.0"
    assert lines[1] == "rejected: True" or lines[1].startswith("[28.")


def test_several_threads_compile_and_run():
    wrong = []

    def work(seed):
        for i in range(6):
            n = 3 + (seed + i) % 4
            f = jax.jit(lambda x, k=seed * 10 + i: jnp.sum(x * k) + jnp.dot(x, x))
            x = np.arange(n, dtype=np.float32)
            expected = (x * (seed * 10 + i)).sum() + x @ x
            if abs(float(f(x)) - expected) > 1e-3 * max(1, abs(expected)):
                wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert wrong == []


def test_threads_delete_and_donate_at_random():
    add = jax.jit(lambda x, y: x + y, donate_argnums=0)
    f = jax.jit(lambda x: x * 2 + 1)
    problems = []

    def work(seed):
        random = np.random.default_rng(seed)
        pool = [jnp.full(16, float(i)) for i in range(8)]
        try:
            for _ in range(150):
                i, j = random.integers(0, len(pool), 2)
                match random.integers(0, 4):
                    case 0:
                        pool[i] = f(pool[j])
                    case 1 if i != j:
                        pool[i] = add(pool[i], pool[j])
                    case 2:
                        pool[i].delete()
                        pool[i] = jnp.full(16, float(seed))
                    case _:
                        np.asarray(pool[i])
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert problems == []


def test_backends_can_be_cleared():
    code = """
import jax, jax.numpy as jnp
print(float(jnp.ones(3).sum()))
from jax.extend import backend
backend.clear_backends()
print(float(jnp.ones(4).sum()))
"""
    done = python(code)
    assert (done.returncode, done.stdout) == (0, "3.0\n4.0\n"), done.stderr
