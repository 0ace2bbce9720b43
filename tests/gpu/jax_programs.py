#!/usr/bin/env python3
"""JAX programs on Tokamak's device, compared with JAX's CPU. Called by tests/gpu/device.py."""
import os
import sys
import time
import traceback

import numpy as np
import jax
import jax.numpy as jnp
from jax import lax

passed = failed = 0
CPU = jax.devices("cpu")[0]
DEVICE = jax.devices("tokamak")[0]


def check(name, good, words=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print(f"{'passed' if good else 'FAILED'} {name} {words}", flush=True)


def guarded(name, fn):
    try:
        fn()
    except Exception as error:  # the other checks still run
        check(name, False, "".join(traceback.format_exception_only(error))[-700:].strip())


def compare(name, fn, *arrays, rtol=2e-5, atol=2e-5):
    def body():
        begin = time.time()
        got = jax.jit(fn)(*[jax.device_put(a, DEVICE) for a in arrays])
        got = [np.asarray(x) for x in jax.tree.leaves(got)]
        seconds = time.time() - begin
        with jax.default_device(CPU):
            want = [np.asarray(x) for x in jax.tree.leaves(jax.jit(fn)(*[jax.device_put(a, CPU) for a in arrays]))]
        worst = 0.0
        for g, w in zip(got, want, strict=True):
            if g.dtype.kind in "biu":
                worst = max(worst, float((g != w).any()))
                continue
            g, w = g.astype(np.complex128), w.astype(np.complex128)
            worst = max(worst, float(np.max(np.abs(g - w) / (atol + rtol * np.abs(w)), initial=0.0)))
        check(name, worst <= 1, f"{seconds * 1e3:.0f} ms" + (f", off by {worst:.3g} tolerances" if worst > 1 else ""))

    guarded(name, body)


def layernorm(x, g, b):
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return (x - m) * lax.rsqrt(v + 1e-5) * g + b


def mlp_loss(params, x, y):
    for w, b in params[:-1]:
        x = jax.nn.relu(jnp.dot(x, w, precision="highest") + b)
    w, b = params[-1]
    logits = jnp.dot(x, w, precision="highest") + b
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1))


def convolutions(f):
    """Large enough for cuDNN, each with its gradients. TF32 is compared with the CPU's f32: gradients of filters are sums of thousands of
    terms."""
    def with_gradients(name, x, w, spec, strides, **how):
        def convolve(a, b):
            return lax.conv_general_dilated(a, b, strides, how.get("pad", "SAME"), how.get("lhs"), how.get("rhs"), spec, how.get("groups", 1))

        def body(a, b):
            y, vjp = jax.vjp(convolve, a, b)
            return (y, *vjp(y))
        compare("convolution " + name, body, x, w * np.float32(np.prod(w.shape[:-1]) ** -0.5), rtol=2e-2, atol=0.2)

    nhwc, nchw = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")
    with_gradients("plain", f(4, 14, 14, 64), f(3, 3, 64, 64), nhwc, (1, 1))
    with_gradients("grouped", f(4, 14, 14, 128), f(3, 3, 32, 128), nhwc, (1, 1), groups=4)
    with_gradients("strided", f(4, 28, 28, 64), f(3, 3, 64, 64), nhwc, (2, 2))
    with_gradients("dilated", f(4, 14, 14, 64), f(3, 3, 64, 64), nhwc, (1, 1), rhs=(2, 2))
    with_gradients("channels first", f(4, 64, 14, 14), f(64, 64, 3, 3), nchw, (1, 1))
    with_gradients("base dilation", f(4, 14, 14, 64), f(4, 4, 64, 64), nhwc, (1, 1), pad=((2, 2), (2, 2)), lhs=(2, 2))
    with_gradients("line", f(4, 400, 64), f(5, 64, 64), ("NWC", "WIO", "NWC"), (1,))
    with_gradients("space", f(2, 10, 10, 10, 32), f(3, 3, 3, 32, 32), ("NDHWC", "DHWIO", "NDHWC"), (1, 1, 1))


def linear_algebra(f):
    """Ops that libraries compute. Vectors that are determined only up to a factor are multiplied out."""
    times = lambda a, b: jnp.matmul(a, b, precision="highest")
    well, few = f(60, 60) + 20 * np.eye(60, dtype=np.float32), f(60, 3)
    spectrum = (f(6, 129) + 1j * f(6, 129)).astype(np.complex64)
    compare("fft, inverse", lambda a: (jnp.fft.ifft(a), jnp.fft.ifft2(a), jnp.fft.irfft(a), jnp.fft.irfft2(a), jnp.fft.irfft(a, n=255)), spectrum)
    compare("fft, real", lambda a: (jnp.fft.rfft(a), jnp.fft.rfftn(a.reshape(4, 5, 6, 7))), f(840), rtol=1e-4, atol=1e-4)
    compare("fft in a loop", lambda a: lax.fori_loop(0, 9, lambda i, c: jnp.fft.ifft(jnp.fft.fft(c) * 0.9), a), spectrum)
    compare("solve, inverse, determinant", lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.slogdet(a)), well, few, rtol=1e-3, atol=1e-4)
    compare("lu of a batch", lambda a: lax.linalg.lu(a.reshape(9, 20, 20)), well, rtol=1e-2, atol=1e-2)
    compare("triangular systems", lambda a, b: [lax.linalg.triangular_solve(a, b if left else b.T, left_side=left, lower=True, transpose_a=transposed)
                                                for left in (True, False) for transposed in (True, False)], well, few, rtol=1e-3, atol=1e-4)  # fmt: skip
    compare("qr", lambda a: [times(*jnp.linalg.qr(x)) for x in (a, a[:, :7], a[:7], a.reshape(9, 40, 10))], well, rtol=1e-3, atol=1e-3)
    compare("eigh", lambda a: (lambda w, v: (w, times(v * w, v.T)))(*jnp.linalg.eigh(a + a.T)), well, rtol=1e-3, atol=1e-3)
    compare("svd", lambda a: [times(u * s[..., None, :], v) for x in (a, a[:, :7], a[:7], a.reshape(9, 20, 20)) for u, s, v in [jnp.linalg.svd(x, full_matrices=False)]],
            well, rtol=1e-3, atol=1e-3)  # fmt: skip
    broken = well.copy()
    broken[3, 5] = np.nan
    compare("what is no number", lambda a, b: [jnp.isnan(x).all() for x in (jnp.linalg.cholesky(-a), jnp.linalg.solve(a, b), jnp.linalg.svd(a)[1])], broken, few)


def programs(r):
    f = lambda *s: r.standard_normal(s).astype(np.float32)
    x = f(64, 300)
    compare("elementwise", lambda a: jnp.tanh(a) * jnp.exp(-a * a) + jnp.sin(a), x)
    compare("softmax", lambda a: jax.nn.softmax(a, -1), x)
    compare("layernorm", layernorm, x, f(300), f(300))
    compare("sums", lambda a: (a.sum(), a.sum(0), a.sum(1), a.max(), jnp.argmax(a, 1)), x, rtol=1e-4, atol=1e-4)
    compare("transpose", lambda a: a.T * 2, x)
    compare("concatenate", lambda a: jnp.concatenate([a, -a, a[:, :5]], 1), x)
    compare("bf16", lambda a: (jax.nn.gelu(a.astype(jnp.bfloat16)).astype(jnp.float32)), x, rtol=2e-2, atol=2e-2)
    compare("integers", lambda a: (a * 7) // 3 + (a << 2) - (a % 5), r.integers(-99, 99, (33, 17)).astype(np.int32))
    compare("complex", lambda a: jnp.exp(a) * jnp.conj(a), (f(40) + 1j * f(40)).astype(np.complex64))
    compare("matmul", lambda a, b: jnp.dot(a, b, precision="highest"), f(100, 300), f(300, 70), rtol=1e-4, atol=1e-4)
    compare("matmul, default precision", jnp.dot, f(256, 256), f(256, 256), rtol=1e-2, atol=5e-2)
    compare("matmul, bf16", lambda a, b: jnp.dot(a.astype(jnp.bfloat16), b.astype(jnp.bfloat16)).astype(jnp.float32), f(128, 256),
            f(256, 64), rtol=2e-2, atol=2e-1)
    compare("einsum", lambda a, b: jnp.einsum("bhqd,bhkd->bhqk", a, b, precision="highest"), f(2, 3, 16, 8), f(2, 3, 20, 8), rtol=1e-4, atol=1e-4)
    convolutions(f)
    compare("convolution", lambda a, w: lax.conv(a, w, (1, 1), "SAME", precision="highest"), f(2, 3, 16, 16), f(4, 3, 3, 3), rtol=1e-4, atol=1e-4)
    compare("sort", lambda a: (jnp.sort(a, 1), jnp.argsort(a, 1), lax.top_k(a, 5)), f(8, 100))
    compare("cumsum", lambda a: jnp.cumsum(a, 1), f(8, 1000), rtol=1e-3, atol=1e-3)
    compare("gather, scatter", lambda a, i: (a[i], a.at[i].add(1.0)), f(50, 4), r.integers(0, 50, 30).astype(np.int32))
    compare("fft", lambda a: jnp.fft.fft(a), f(8, 64), rtol=1e-4, atol=1e-4)
    compare("cholesky", lambda a: jnp.linalg.cholesky(a @ a.T + 20 * jnp.eye(20)), f(20, 20), rtol=1e-3, atol=1e-3)
    linear_algebra(f)
    compare("random", lambda k: jax.random.normal(jax.random.wrap_key_data(k), (1000,)), np.array([1, 2], np.uint32))
    compare("while", lambda a: lax.while_loop(lambda s: s[0] < 1000.0, lambda s: (s[0] * 2.0, s[1] + 1), (jnp.abs(a) + 1, 0)), np.float32(0.3))
    compare("cond", lambda p, a: lax.cond(p, jnp.sin, jnp.cos, a), np.bool_(True), x)
    compare("switch", lambda i, a: lax.switch(i, [jnp.sin, jnp.cos, jnp.exp], a), np.int32(2), x)
    compare("scan", lambda a: lax.scan(lambda c, v: (0.9 * c + v, jnp.tanh(c)), jnp.zeros(300), a), x)
    compare("fori", lambda a: lax.fori_loop(0, 57, lambda i, c: 0.9 * c + 0.1 * jnp.sin(c + i), a), x)
    compare("callback", lambda a: jax.pure_callback(lambda v: np.sort(np.asarray(v)), jax.ShapeDtypeStruct((300,), jnp.float32), a[0]) + 1, x)
    sizes = [(40, 64), (64, 64), (64, 10)]
    params = [(f(*s) / 8, f(s[1])) for s in sizes]
    compare("gradient of an MLP", jax.value_and_grad(mlp_loss), params, f(32, 40), r.integers(0, 10, 32).astype(np.int32), rtol=1e-3, atol=1e-4)


def donation():
    step = jax.jit(lambda a, b: (a + b, a * 0 + 1), donate_argnums=0)
    a, b = jax.device_put(np.zeros((1000,), np.float32), DEVICE), jax.device_put(np.ones((1000,), np.float32), DEVICE)
    for _ in range(50):
        was = a
        a, _ = step(a, b)
    check("donation", was.is_deleted() and float(a[0]) == 50)


def asynchronous():
    f = jax.jit(lambda a: a * 1.0001 + 1)
    size = 1 << 22 if DEVICE.device_kind != "simulated GPU" else 1 << 8
    a = jax.device_put(np.zeros((size,), np.float32), DEVICE)
    f(a).block_until_ready()
    begin = time.time()
    for _ in range(200):
        a = f(a)
    asked = time.time() - begin
    a.block_until_ready()
    took = time.time() - begin
    want = 0.0
    for _ in range(200):
        want = float(np.float32(np.float32(want) * np.float32(1.0001)) + np.float32(1))
    check("200 programs in a row", abs(float(a[5]) - want) < 1e-2 * want, f"asked for in {asked * 1e3:.1f} ms, done in {took * 1e3:.1f} ms")


def dispatch():
    f = jax.jit(lambda a: a + 1)
    a = jax.device_put(np.zeros((8,), np.float32), DEVICE)
    f(a).block_until_ready()
    n, times = 2000, []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(n):
            b = f(a)
        times.append((time.perf_counter() - begin) / n)
        b.block_until_ready()
    begin = time.perf_counter()
    for _ in range(200):
        float(f(a)[0])
    round_trip = (time.perf_counter() - begin) / 200
    check("dispatch", True, f"{min(times) * 1e6:.1f} us a call, {round_trip * 1e6:.1f} us with its result on the host")


def many_kernels():
    def f(a):
        for i in range(70):
            a = a - a.sum() * (1e-6 * i)
        return a

    a = np.random.default_rng(1).standard_normal(20000).astype(np.float32)
    with jax.default_device(CPU):
        want = np.asarray(jax.jit(f)(jax.device_put(a, CPU)))
    g, n = jax.jit(f), 50 if DEVICE.device_kind != "simulated GPU" else 5
    x = jax.device_put(a, DEVICE)
    good = all(np.allclose(np.asarray(g(x)), want, rtol=1e-3, atol=1e-3) for _ in range(5))
    begin = time.perf_counter()
    y = x
    for _ in range(n):
        y = g(y)
    y.block_until_ready()
    took = (time.perf_counter() - begin) / n
    check("many kernels", good, f"{took * 1e6:.0f} us a call")


def transfers():
    size = 1 << 26 if DEVICE.device_kind != "simulated GPU" else 1 << 16
    a = np.arange(size, dtype=np.float32)
    jax.device_put(a, DEVICE).block_until_ready()
    begin = time.time()
    b = jax.device_put(a, DEVICE).block_until_ready()
    into = time.time() - begin
    begin = time.time()
    c = np.asarray(b)
    out = time.time() - begin
    check("transfers", np.array_equal(a, c), f"{a.nbytes / into / 1e9:.2f} GB/s in, {a.nbytes / out / 1e9:.2f} GB/s out")
    f = np.asfortranarray(np.arange(600, dtype=np.float32).reshape(20, 30))
    check("transposed transfer", np.array_equal(np.asarray(jax.device_put(f, DEVICE)), f))
    h = jax.device_put(b[:100], jax.sharding.SingleDeviceSharding(DEVICE, memory_kind="pinned_host"))
    check("pinned_host", h.sharding.memory_kind == "pinned_host" and np.array_equal(np.asarray(h), a[:100]))


def memory():
    before = DEVICE.memory_stats()["bytes_in_use"]
    a = jax.device_put(np.zeros((1 << 20,), np.float32), DEVICE)
    during = DEVICE.memory_stats()
    check("memory_stats", during["bytes_in_use"] - before >= 1 << 22 and during["bytes_limit"] > 0, str(during))
    del a
    check("memory comes back", DEVICE.memory_stats()["bytes_in_use"] <= before + 4096)
    limit = during["bytes_limit"]
    try:
        jax.jit(lambda: jnp.zeros((limit // 4 + 1024,), jnp.float32))().block_until_ready()
        check("out of memory", False, "nothing was rejected")
    except Exception as error:
        check("out of memory", "RESOURCE_EXHAUSTED" in str(error) or "TK4204" in str(error), str(error)[:300])
    check("life goes on", float(jax.jit(lambda x: x + 1)(jax.device_put(np.float32(1), DEVICE))) == 2)


def main():
    print(jax.__version__, DEVICE, DEVICE.device_kind, DEVICE.client.platform_version)
    check("the device", os.environ["TOKAMAK_DEVICE"] != "cuda" or "NVIDIA" in DEVICE.device_kind, DEVICE.device_kind)
    programs(np.random.default_rng(0))
    for fn in (donation, asynchronous, dispatch, many_kernels, transfers, memory):
        guarded(fn.__name__, fn)
    print(f"tally: {passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


sys.exit(main())
