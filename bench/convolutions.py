#!/usr/bin/env python3
"""Convolutions and their gradients on a GPU: values against JAX's CPU, times against XLA.

    TOKAMAK_DEVICE=cuda JAX_PLATFORMS=tokamak,cpu bench/convolutions.py check [NAME...]        at reduced sizes
    TOKAMAK_DEVICE=cuda JAX_PLATFORMS=tokamak,cuda,cpu bench/convolutions.py time [NAME...]    at real ones, interleaved

NAME is a substring of a program's name. A time is the best of five repetitions of ten asynchronous calls with one wait; the compile time
is the first call's. TOKAMAK_DEVICE=sim-cuda checks values without a GPU.
"""
import math
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

import own_python  # noqa: F401, must be first: it may re-execute with another Python
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

NHWC, NCHW = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")
SPECS = {1: ("NWC", "WIO", "NWC"), 2: NHWC, 3: ("NDHWC", "DHWIO", "NDHWC")}
TOLERANCE = {"float32": 0.02, "float16": 0.02, "bfloat16": 0.06}  # relative to the root mean square: TF32 has 10 bits
RANDOM = np.random.default_rng(0)


def drawn(dtype, *dims):
    return jnp.asarray(RANDOM.standard_normal(dims), dtype)


def conv(stride=1, spec=None, groups=1, dilation=1):
    def body(x, w):
        n = x.ndim - 2
        return lax.conv_general_dilated(x, w, (stride,) * n, "SAME", dimension_numbers=spec or SPECS[n],
                                        feature_group_count=groups, rhs_dilation=(dilation,) * n)
    return body


def transposed(x, w):
    return lax.conv_transpose(x, w, (2, 2), "SAME")


def gradients(fn):
    return lambda x, w, dy: jax.vjp(fn, x, w)[1](dy)


def loss(params, x, labels):
    w0, w1, w2, w3, wd = params
    x = jax.nn.relu(conv()(x, w0))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = jax.nn.relu(conv()(x, w1))
    x = jax.nn.relu(conv(2)(x, w2))
    x = x + jax.nn.relu(conv()(x, w3))
    logits = jax.nn.log_softmax((x.mean((1, 2)) @ wd).astype(jnp.float32))
    return -jnp.mean(jnp.take_along_axis(logits, labels[:, None], 1))


def train(params, x, labels):
    value, slopes = jax.value_and_grad(loss)(params, x, labels)
    return value, [p - jnp.asarray(0.01, p.dtype) * d for p, d in zip(params, slopes, strict=True)]


def training(dtype, real):
    wide = 256 if real else 64
    shapes = [(3, 3, 3, 64), (3, 3, 64, 128), (3, 3, 128, wide), (3, 3, wide, wide), (wide, 10)]
    params = [drawn(dtype, *shape) * jnp.asarray(math.prod(shape[:-1]) ** -0.5, dtype) for shape in shapes]
    batch, size = (128, 32) if real else (8, 16)
    return train, [params, drawn(dtype, batch, size, size, 3), jnp.asarray(RANDOM.integers(0, 10, batch))]


def programs(real):
    """name -> a function that builds a program and its arguments"""
    batch = 32 if real else 4
    size = lambda n: n if real else max(n // 4, 14)
    made = {}

    def add(name, dtype, fn, x, w, both=True):
        def arguments():
            return [drawn(dtype, *x), drawn(dtype, *w) * jnp.asarray(math.prod(w[:-1]) ** -0.5, dtype)]

        def backward():
            first = arguments()
            y = jax.eval_shape(fn, *first)
            return gradients(fn), [*first, drawn(dtype, *y.shape)]
        made[f"{name} {dtype}"] = lambda: (fn, arguments())
        if both:
            made[f"{name} {dtype} gradients"] = backward

    for dtype in ("float32", "bfloat16"):
        for n, c in ((56, 64), (28, 128), (14, 256)):
            add(f"3x3 {n}x{n}x{c}", dtype, conv(), (batch, size(n), size(n), c), (3, 3, c, c))
        image = (batch, size(56), size(56), 64)
        add("strided 56x56x64", dtype, conv(2), image, (3, 3, 64, 128))
        add("stem 224x224x3", dtype, conv(2), (batch, size(224), size(224), 3), (7, 7, 3, 64))
        add("1x1 56x56x64", dtype, conv(), image, (1, 1, 64, 256))
        add("1x1 strided", dtype, conv(2), image, (1, 1, 64, 256))
        add("channels first 28x28x128", dtype, conv(spec=NCHW), (batch, 128, size(28), size(28)), (128, 128, 3, 3))
        add("groups of 32", dtype, conv(groups=8), (batch, size(28), size(28), 256), (3, 3, 32, 256))
        add("transposed 28x28x128", dtype, transposed, (batch, size(28), size(28), 128), (4, 4, 128, 64))
        made[f"training {dtype}"] = lambda dtype=dtype: training(dtype, real)
    add("depthwise 56x56x64", "float32", conv(groups=64), image, (3, 3, 1, 64))
    add("dilated 56x56x64", "float32", conv(dilation=2), image, (3, 3, 64, 64))
    add("line 4096x64", "float32", conv(), (batch, size(4096), 64), (7, 64, 64))
    add("space 28x28x28x32", "float32", conv(), (batch // 2, *[size(28)] * 3, 32), (3, 3, 3, 32, 32))
    add("3x3 28x28x128", "float16", conv(), (batch, size(28), size(28), 128), (3, 3, 128, 128), both=False)
    return made


def chosen(real, names):
    return [(name, make) for name, make in programs(real).items() if not names or any(part in name for part in names)]


def leaves(values):
    return [np.asarray(value).astype(np.float64) for value in jax.tree.leaves(values)]


def off(got, want):
    return max(float(np.max(np.abs(g - w)) / (np.sqrt(np.mean(w * w)) + 1e-9)) for g, w in zip(got, want, strict=True))


def check(names):
    device, cpu = jax.devices("tokamak")[0], jax.devices("cpu")[0]
    bad = 0
    for name, make in chosen(False, names):
        with jax.default_device(cpu), jax.default_matmul_precision("highest"):
            fn, args = make()
            want = leaves(jax.jit(fn)(*args))
        jax.clear_caches()
        error = off(leaves(jax.jit(fn)(*jax.device_put(args, device))), want)
        limit = max(bound for dtype, bound in TOLERANCE.items() if dtype in name.split())
        bad += not error < limit
        print(f"{'passed' if error < limit else 'FAILED'} {name}: off by {error:.2g}", flush=True)
    return bad


def timed(fn, args):
    begin = time.perf_counter()
    for _ in range(10):
        result = fn(*args)
    jax.block_until_ready(result)
    return (time.perf_counter() - begin) * 1e5


def measure(names):
    sides = [jax.devices("tokamak")[0], jax.devices("cuda")[0]]
    ratios = []
    print(f"{'us a call':42s} {'Tokamak':>8s} {'XLA':>8s} {'times':>6s}   compile, s")
    for name, make in chosen(True, names):
        with jax.default_device(sides[1]):
            fn, args = make()
        runs, compiles = [], []
        for side in sides:
            run = (jax.jit(lambda *a, fn=fn: fn(*a)), jax.device_put(args, side))
            begin = time.perf_counter()
            jax.block_until_ready(run[0](*run[1]))
            compiles.append(time.perf_counter() - begin)
            runs.append(run)
        repetitions = [[timed(*run) for run in runs] for _ in range(5)]
        ours, theirs = (min(column) for column in zip(*repetitions, strict=True))
        ratios.append(theirs / ours)
        print(f"{name:42s} {ours:8.0f} {theirs:8.0f} {theirs / ours:6.2f}   {compiles[0]:.2f} {compiles[1]:.2f}", flush=True)
    if ratios:
        print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f} of {len(ratios)}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in ("check", "time"):
        sys.exit(__doc__)
    sys.exit(min(1, (check if sys.argv[1] == "check" else measure)(sys.argv[2:])))
