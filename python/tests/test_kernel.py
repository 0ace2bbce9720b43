"""Custom kernels (tokamak.kernel): values, transformations, hooks and errors, on the CPU backend and the simulated GPU."""

import re
import shutil
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import ROOT, environment, script

import tokamak

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

SAXPY = """
TOK_KERNEL(saxpy) {
  for (int64_t i = TOK_BEGIN(TOK_OUT_SIZE); i < TOK_END(TOK_OUT_SIZE); ++i)
    out[i] = a[0] * x[i] + y[i];
}
"""
TWICE = """
TOK_KERNEL(twice) {
  for (int64_t i = TOK_BEGIN(TOK_X_SIZE); i < TOK_END(TOK_X_SIZE); ++i) TOK_STORE_0(i, 2 * TOK_LOAD_0(i));
}
"""


def same(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def saxpy(**more):
    return tokamak.kernel(name="saxpy", c=SAXPY, out=lambda a, x, y: same(x), blocks=3,
                          reference=lambda a, x, y: a * x + y, **more)  # fmt: skip


def twice(**more):
    return tokamak.kernel(**{"name": "twice", "c": TWICE, "out": lambda x: same(x), "hooks": True, "blocks": 4, **more})


A = np.float32(2)
X = np.arange(1000, dtype=np.float32)
Y = np.ones(1000, np.float32)


def custom_steps(f, *args):
    """The steps of a function that are custom kernels, and all its steps."""
    report = tokamak.explain(f, *args).data
    return [step for step in report["kernels"] if step["generator"] == "custom"], report["kernels"]


def test_plain_calls_and_jit():
    k = saxpy()
    np.testing.assert_array_equal(k(A, X, Y), 2 * X + 1)
    np.testing.assert_array_equal(jax.jit(lambda x: k(A, x, Y) - 1)(X), 2 * X)
    np.testing.assert_array_equal(jax.jit(jax.jit(k))(A, X, Y), 2 * X + 1)
    assert jax.eval_shape(k, A, X, Y) == jax.ShapeDtypeStruct((1000,), np.float32)
    assert k.check(A, X, Y) == 0


def test_vmap_by_loop_by_rule_and_batched():
    k, xs = saxpy(), np.stack([X, 2 * X, 3 * X])
    np.testing.assert_array_equal(jax.vmap(k, (None, 0, None))(A, xs, Y), 2 * xs + 1)
    np.testing.assert_array_equal(jax.jit(jax.vmap(k, (0, None, None), 1))(xs[:, 1], X, Y), (X[:, None] * xs[None, :, 1] + 1))
    square = tokamak.kernel(name="square", c="""
TOK_KERNEL(square) { for (int i = 0; i < TOK_X_SIZE; ++i) out[i] = x[i] * x[i] + TOK_X_RANK; }
""", out=lambda x: same(x), vmap="batched", reference=lambda x: x * x + x.ndim)  # fmt: skip
    np.testing.assert_array_equal(jax.vmap(jax.vmap(square))(X.reshape(2, 5, 100)), X.reshape(2, 5, 100) ** 2 + 3)
    assert len(custom_steps(jax.vmap(square), X.reshape(10, 100))[0]) == 1

    by_rule = twice(vmap=lambda size, batched, x: (x * size, True))
    np.testing.assert_array_equal(jax.vmap(by_rule)(X), X * 1000)


def test_grad_and_grad_of_grad():
    k = saxpy(vjp=lambda args, out, cotangent: (jnp.vdot(cotangent, args[1]), cotangent * args[0], cotangent))
    np.testing.assert_array_equal(jax.grad(lambda x: k(A, x, Y).sum())(X), np.full(1000, 2.0))
    loss = lambda a: (k(a, X, Y) ** 2).sum()  # noqa: E731
    expected = lambda a: ((a * X + Y) ** 2).sum()  # noqa: E731
    np.testing.assert_allclose(jax.grad(loss)(A), jax.grad(expected)(A), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(jax.grad(loss))(A), jax.grad(jax.grad(expected))(A), rtol=1e-6)
    pair = saxpy(vjp=(lambda a, x, y: (saxpy()(a, x, y), a), lambda a, cotangent: (cotangent.sum() * 0, cotangent * a, cotangent)))
    np.testing.assert_array_equal(jax.vmap(jax.grad(lambda x: pair(A, x, Y).sum()))(np.stack([X, X]))[1], np.full(1000, 2.0))
    with pytest.raises(NotImplementedError, match="kernel 'saxpy' has no derivative: pass vjp="):
        jax.grad(lambda x: saxpy()(A, x, Y).sum())(X)


def test_scan_types_and_several_results():
    k = saxpy()
    np.testing.assert_array_equal(jax.lax.scan(lambda c, _: (k(A, c, Y), c[0]), X, None, length=3)[1], [0, 1, 3])
    both = tokamak.kernel(name="both", cpp="""
template <typename T> T twice(T x) { return x + x; }
extern "C" void both(int64_t block, int64_t blocks, const TOK_X_TYPE* x, TOK_SUM_TYPE* sum, TOK_Y_TYPE* y) {
  double total = 0;
  for (int i = 0; i < TOK_X_DIM0 * TOK_X_DIM1; ++i) { total += x[i]; y[i] = twice(x[i]) + PLUS; }
  *sum = total;
}
""", out=lambda x: {"a": jax.ShapeDtypeStruct((), np.float64 if x.dtype == np.float64 else np.float32), "b": same(x)},
        outputs=("sum", "y"), defines={"PLUS": 1})  # fmt: skip
    for dtype in (np.int8, np.uint16, np.int32, np.float32):
        x = np.arange(6).reshape(2, 3).astype(dtype)
        got = both(x)
        assert got["a"] == 15 and got["b"].dtype == dtype
        np.testing.assert_array_equal(got["b"], 2 * x + 1)
    halves = tokamak.kernel(name="halves", c="""
TOK_KERNEL(halves) { for (int i = 0; i < TOK_X_SIZE; ++i) out[i] = TO(FROM(x[i]) + 1); }
""", out=lambda x: same(x), defines=lambda x: {"TO": f"tok_f32_to_{'b' * (x.dtype == jnp.bfloat16)}f16",
                                               "FROM": f"tok_{'b' * (x.dtype == jnp.bfloat16)}f16_to_f32"})  # fmt: skip
    bits = np.arange(65536, dtype=np.uint16)
    for dtype in (jnp.bfloat16, np.float16):
        x = bits.view(dtype)
        with np.errstate(invalid="ignore"):
            expected = (x.astype(np.float32) + 1).astype(dtype)
        got = np.asarray(halves(x))
        np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
        keep = ~np.isnan(expected)
        np.testing.assert_array_equal(got[keep].view(np.uint16), expected[keep].view(np.uint16))


def test_aliases_update_in_place():
    bump = tokamak.kernel(name="bump", c="TOK_KERNEL(bump) { out[at[0]] += 10; }", out=lambda x, at: same(x), aliases={0: 0})

    def f(x):
        y = bump(x + 1, 3)
        return bump(y, 4), y * 2

    first, second = jax.jit(f)(X)
    expected = X + 1
    expected[3] += 10
    np.testing.assert_array_equal(second, 2 * expected)
    expected[4] += 10
    np.testing.assert_array_equal(first, expected)
    donated = jax.device_put(X)
    where = donated.unsafe_buffer_pointer()
    out = jax.jit(lambda x: bump(x, 7), donate_argnums=0)(donated)
    assert out.unsafe_buffer_pointer() == where and out[7] == 17 and donated.is_deleted()
    kept = jnp.asarray(X)
    np.testing.assert_array_equal(jax.jit(lambda x: bump(x, 7) - x)(kept), 10 * (X == 7))
    np.testing.assert_array_equal(kept, X)
    steps = jax.lax.fori_loop(0, 5, lambda i, x: bump(x, i), jnp.zeros(8, jnp.float32))
    np.testing.assert_array_equal(steps, [10] * 5 + [0] * 3)
    with pytest.raises(tokamak.KernelError, match="input 0 is float32.1000., output 0 is float32.2."):
        tokamak.kernel(name="bump", c="x", out=lambda x: jax.ShapeDtypeStruct((2,), x.dtype), aliases={0: 0})(X)


def fused_and_not(f, *args):
    """The results with and without fusion."""
    plain = jax.jit(f).lower(*args).compile(compiler_options={"tokamak_fusion": "none"})
    return jax.tree.map(np.asarray, jax.jit(f)(*args)), jax.tree.map(np.asarray, plain(*args))


def test_hooks_fuse_what_is_around_them():
    k = twice()

    def f(x, y):
        return jnp.exp(-jnp.abs(k(jnp.tanh(x) * y[None] + 1))) * y[:, None]

    x, y = np.linspace(-9, 9, 10000, dtype=np.float32).reshape(100, 100), np.linspace(0, 1, 100, dtype=np.float32)
    ours, steps = custom_steps(f, x, y)
    assert len(ours) == len(steps) == 1, steps
    for op in ("tanh", "exponential", "abs", "twice"):
        assert any(op in name for name in ours[0]["instrs"]), ours[0]
    fused, plain = fused_and_not(f, x, y)
    np.testing.assert_array_equal(fused.view(np.uint32), plain.view(np.uint32))
    report = tokamak.explain(f, x, y).data
    rules = {d["rule"]: d["verdict"] for d in report["decisions"] if d["rule"].startswith("custom-kernel")}
    assert rules == {"custom-kernel.fuse-load": "accepted", "custom-kernel.fuse-store": "accepted"}


def test_hooks_that_do_not_pay_stay_apart():
    x = np.linspace(0, 1, 1 << 16, dtype=np.float32)
    reads_often = twice(loads=1000.0)
    ours, steps = custom_steps(lambda x: reads_often(jnp.exp(jnp.tanh(x))), x)
    assert len(ours) == 1 and len(steps) == 2
    # The slow path of a sine would be computed for every element.
    report = tokamak.explain(lambda x: twice()(jnp.sin(x) * 3 + 1), x).data
    assert any(d["rule"] == "custom-kernel.slow-in-c" for d in report["decisions"])
    assert len(report["kernels"]) == 2 and not any("sine" in name for k in report["kernels"] if k["generator"] == "custom" for name in k["instrs"])
    # The value before the kernel is needed elsewhere, and so is the one after it.
    k = twice()

    def f(x):
        before = jnp.exp(x)
        after = k(before)
        return before, after, after + 1, jnp.stack([after, before]).sum(0)

    fused, plain = fused_and_not(f, x)
    for got, expected in zip(fused, plain):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8, jnp.bfloat16, np.float16])
def test_hooks_have_the_bits_of_the_kernels(dtype):
    k = twice(c="TOK_KERNEL(twice) { for (int64_t i = 0; i < TOK_X_SIZE; ++i) TOK_STORE_0(i, TOK_LOAD_0(i)); }", blocks=1)
    x = (np.arange(4096) % 251 - 99).astype(dtype)

    def f(x):
        y = k(x * 3 + 1)
        return jnp.where(y > 5, y.astype(jnp.float32) / 7, 0.5), jnp.minimum(y, 9).astype(jnp.int32), y < 4, jnp.maximum(y, 2)

    def g(x):
        return jnp.log1p(jnp.abs(x.astype(jnp.float32))) // 0.3, jnp.tanh(x.astype(jnp.float32)), jnp.sqrt(jnp.abs(x).astype(jnp.float32))

    for function in (f, lambda x: g(k(jnp.clip(x, -3, 100)))):
        fused, plain = fused_and_not(function, x)
        for got, expected in zip(fused, plain):
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(got.view(np.uint8), expected.view(np.uint8))


def test_hooks_in_loops_and_under_vmap():
    k = twice(vmap="batched")
    step = lambda c, _: (k(c * 0.25) + 1, None)  # noqa: E731
    np.testing.assert_array_equal(jax.jit(lambda x: jax.lax.scan(step, x, None, length=4)[0])(X), X / 16 + 1.875)
    np.testing.assert_array_equal(jax.jit(jax.vmap(lambda x: k(x + 1) + 1))(X.reshape(10, 100)), 2 * X.reshape(10, 100) + 3)


@pytest.fixture
def run_lowered(tmp_path):
    """Runs a lowered program by the command line: without Python, on any backend."""
    tool = ROOT / "build/bin/tokamak"
    if not tool.exists():
        pytest.skip("the command line is not built")

    def run(f, *args, backend="cpu", suffix="mlir", **env):
        path = tmp_path / f"program.{suffix}"
        text = jax.jit(f).trace(*args).lower(lowering_platforms=("tokamak",)).as_text()
        (tmp_path / "program.mlir").write_text(text)
        if suffix == "hlo":
            done = subprocess.run([tool, "convert", tmp_path / "program.mlir", "--to", "hlo", "-o", path], capture_output=True, text=True)
            assert done.returncode == 0 and "TOK_KERNEL" in path.read_text(), done.stderr
        np.savez(tmp_path / "in.npz", **{f"in_{i}": arg for i, arg in enumerate(args)})
        out = tmp_path / "out.npz"
        command = [tool, "run", path, "--backend", backend, "--inputs", tmp_path / "in.npz", "--outputs", out]
        done = subprocess.run(command, capture_output=True, text=True, env=environment(**env), timeout=120)
        return done.stderr if done.returncode else np.load(out)["out_0"]

    return run


def around(x):
    return twice()(x + 1) * 3


@pytest.mark.parametrize("backend", ["cpu", "interp", "sim", "sim-gpu", "sim-cuda"])
def test_a_lowered_program_runs_without_python_on_all_backends(run_lowered, backend):
    np.testing.assert_array_equal(run_lowered(around, X[:40], backend=backend), (X[:40] + 1) * 6)


def test_text_and_checks_of_a_lowered_program(run_lowered):
    np.testing.assert_array_equal(run_lowered(around, X[:40], suffix="hlo"), (X[:40] + 1) * 6)
    np.testing.assert_array_equal(run_lowered(around, X[:40], TOKAMAK_CHECK="kernels"), (X[:40] + 1) * 6)
    crash = tokamak.kernel(name="crash", c="TOK_KERNEL(crash) { *(volatile int*)(8 * tok_blocks) = 1; }", out=lambda x: same(x))
    assert "TK4011" in (said := run_lowered(crash, X, TOKAMAK_CHECK="kernels")) and "kernel 'crash' failed: SIGSEGV" in said


def test_without_a_compiler(run_lowered):
    said = run_lowered(around, X, TOKAMAK_CC="/no/such/cc", TOKAMAK_CACHE="off")
    assert "TK4009" in said and "TOKAMAK_CC=/no/such/cc" in said and "apt-get install gcc" in said


CUDA = """
TOK_KERNEL(twice) {
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < TOK_X_SIZE) TOK_STORE_0(i, 2 * TOK_LOAD_0(i));
}
"""


def test_cuda_sources_compile(run_lowered):
    """The simulated GPU compiles CUDA sources with NVRTC, if it is present, and runs the C ones."""

    def program(source):
        k = twice(cuda=source, grid=lambda x: (-(-x.size // 256), 256))
        return lambda x, y: jnp.exp(k((jnp.sin(x) + y).astype(jnp.bfloat16)).astype(jnp.float32))

    zeros = np.zeros(40, np.float32)
    broken = run_lowered(program(CUDA.replace("2 *", "undeclared *")), zeros, zeros, backend="sim-cuda")
    if not isinstance(broken, str):
        pytest.skip("NVRTC is not available")
    assert "TK4008" in broken and "kernel 'twice': its CUDA source does not compile" in broken, broken
    assert 'identifier "undeclared" is undefined' in broken
    missing = run_lowered(program(CUDA.replace("twice", "other")), zeros, zeros, backend="sim-cuda")
    assert "TK4008" in missing and "has no function TOK_KERNEL(twice)" in missing
    np.testing.assert_array_equal(run_lowered(program(CUDA), zeros, zeros, backend="sim-cuda"), zeros + 1)


def test_errors_of_sources_name_the_kernel_and_its_line():
    broken = tokamak.kernel(name="broken", out=lambda x: same(x), c="""
TOK_KERNEL(broken) {
  out[0] = undeclared;
}
""")
    line = next(n for n, text in enumerate(open(__file__), 1) if "= undeclared;" in text)
    with pytest.raises(Exception, match=r"TK4008.*kernel 'broken': its source does not compile") as caught:
        broken(X)
    assert re.search(rf"test_kernel.py:{line}:\d+: error", str(caught.value)), caught.value
    missing = tokamak.kernel(name="missing", c="void other(void) {}", out=lambda x: same(x))
    with pytest.raises(Exception, match="(?s)TK4008.*missing"):
        missing(X)
    typed = tokamak.kernel(name="typed", c="void typed(int64_t b, int64_t n, const double* x, float* out) {}", out=lambda x: same(x))
    with pytest.raises(Exception, match="(?s)TK4008.*conflicting types"):
        typed(X)
    np.testing.assert_array_equal(saxpy()(A, X, Y), 2 * X + 1)  # the process goes on


def test_errors_of_declarations():
    k = saxpy(inputs={"a": "f32[]", "x": "f32[n]", "y": "f32[n]"})
    with pytest.raises(tokamak.KernelError, match=r"argument 2 'y' is not f32\[n\]: dimension n is 3, not 1000"):
        k(A, X, Y[:3])
    with pytest.raises(tokamak.KernelError, match="its elements are int32"):
        k(A, X.astype(np.int32), Y)
    with pytest.raises(tokamak.KernelError, match="takes 3 arguments .a, x, y., not 2"):
        k(A, X)
    with pytest.raises(tokamak.KernelError, match="it has no source"):
        tokamak.kernel(name="k")
    with pytest.raises(tokamak.KernelError, match="cuda= needs grid="):
        tokamak.kernel(name="k", cuda="x")
    with pytest.raises(tokamak.KernelError, match="not an identifier"):
        tokamak.kernel(name="a b", c="x")
    with pytest.raises(Exception, match="TK4007.*blocks"):
        saxpy_of_no_blocks = tokamak.kernel(name="saxpy", c=SAXPY, out=lambda a, x, y: same(x), blocks=0)
        saxpy_of_no_blocks(A, X, Y)
    with pytest.raises(Exception, match="TK4010.*it has only a CUDA source"):
        tokamak.kernel(name="k", cuda="x", grid=(1, 1), out=lambda x: same(x))(X)


def test_another_platform_runs_the_reference(cpu):
    with jax.default_device(cpu):
        np.testing.assert_array_equal(jax.jit(saxpy())(*jax.device_put((A, X, Y), cpu)), 2 * X + 1)
        with pytest.raises(NotImplementedError, match="kernel 'twice' has no code for cpu"):
            twice()(jax.device_put(X, cpu))


def test_the_example():
    done = script(ROOT / "examples/custom_kernel.py")
    assert done.returncode == 0, done.stderr
    assert "derivative: [" in done.stdout and "custom" in done.stdout and "TOK_LOAD" not in done.stderr
