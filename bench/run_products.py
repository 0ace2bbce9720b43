#!/usr/bin/env python3
"""Matrix products of Tokamak against XLA on one GPU, interleaved in one process.

    TOKAMAK_DEVICE=cuda JAX_PLATFORMS=tokamak,cuda,cpu bench/run_products.py [--only TEXT] [--seconds 110] [--out DIR]

A row is a shape M x N x K in a layout (N: [M,K] or [K,N]; T: transposed), in bf16 with f32 accumulation. `us` is back-to-back
calls with one wait at the end, the least of several turns that alternate between both sides; the operands rotate over several
sets that exceed L2 together. Where a call takes less than TOGETHER_S, dispatch takes a part of it: then a program of several
products is measured, too, and its time over their number is the time on the device. A third side is XLA with its own kernels
switched off: cuBLASLt. `TFLOP/s` are 2 M N K over the time. `own` says whether our plan has a kernel of its own for the product,
or a call of the library. Results of both sides are compared.
"""
import argparse
import datetime
import itertools
import math
import os
import statistics
import time
from pathlib import Path

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("TOKAMAK_CACHE", "off")

import own_python  # noqa: F401, must be first: it may re-execute with another Python
import jax
import jax.numpy as jnp
import numpy as np
import tokamak
import write_pages
from result_pages import common

L2_BYTES = 64 << 20
MOST_SETS = 24  # of operands
TOGETHER, TOGETHER_S = 8, 60e-6  # products in a program, at most, where a call takes less than this
TURNS = 7
# XLA's options with which a product is a call of the library, the best first: a version may not know all of them.
LIBRARY = [{"xla_gpu_enable_triton_gemm": False, "xla_gpu_enable_cublaslt": True}, {"xla_gpu_enable_triton_gemm": False}]
OURS = [{"tokamak_horizontal": "none"}]  # products of one program stay apart
# batch, M, N, K, layout of both operands, epilogue
SHAPES = [
    (1, 1024, 1024, 1024, "NN", ""), (1, 2048, 2048, 2048, "NN", ""), (1, 4096, 4096, 4096, "NN", ""), (1, 4096, 4096, 4096, "NT", ""),
    (1, 4096, 4096, 4096, "TN", ""), (1, 8192, 8192, 8192, "NN", ""), (1, 8192, 768, 3072, "NN", ""), (1, 8192, 3072, 768, "NN", ""),
    (1, 8192, 768, 768, "NN", ""), (1, 8192, 2304, 768, "NN", ""), (1, 768, 3072, 8192, "TN", ""), (1, 8192, 30522, 768, "NT", ""),
    (1, 8192, 768, 30522, "NN", ""), (1, 30522, 768, 8192, "TN", ""), (1, 4096, 11008, 4096, "NN", ""), (1, 4096, 4096, 11008, "NN", ""),
    (192, 512, 512, 64, "NT", ""), (192, 512, 64, 512, "NN", ""), (1, 64, 4096, 4096, "NN", ""), (1, 8, 4096, 4096, "NN", ""),
    (1, 1, 4096, 4096, "NN", ""), (1, 1000, 1111, 2222, "NN", ""), (1, 4096, 4096, 4096, "NN", "bias_gelu"), (1, 8192, 3072, 768, "NN", "bias_gelu"),
    (1, 4096, 4096, 4096, "NN", "scale_lhs"),
]  # fmt: skip


def program(layout, epilogue):
    spec = {"N": "bmk", "T": "bkm"}[layout[0]] + "," + {"N": "bkn", "T": "bnk"}[layout[1]] + "->bmn"

    def fn(a, b, bias):
        if epilogue == "scale_lhs":
            a = (a.astype(jnp.float32) * bias[0].astype(jnp.float32)).astype(a.dtype)
        y = jnp.einsum(spec, a, b)
        if epilogue == "bias_gelu":
            y = jax.nn.gelu(y + bias)
        return y

    return fn


def together(fn, sets):
    """A program of several calls of fn, and its arguments."""
    return lambda *sets: [fn(*s) for s in sets], [tuple(sets[:TOGETHER])]


class Side:
    """A platform; `options`: sets of compiler options. It uses the first that XLA knows."""

    def __init__(self, platform, options=({},)):
        self.device, self.options = jax.devices(platform)[0], options

    def compiled(self, fn, args):
        lowered = jax.jit(fn).lower(*args)
        for options in self.options:
            try:
                return lowered.compile(compiler_options=options or None)
            except Exception as error:
                if "No such compile option" not in str(error) or options is self.options[-1]:
                    raise
        return None

    def prepare(self, fn, sets):
        self.sets = sets
        begin = time.perf_counter()
        self.fn = self.compiled(fn, self.sets[0])
        self.compile_ms = (time.perf_counter() - begin) * 1e3
        self.out = jax.block_until_ready(self.fn(*self.sets[0]))
        self.best, self.calls, self.times = math.inf, len(self.sets), []

    def turn(self, seconds):
        begin = time.perf_counter()
        for s in itertools.islice(itertools.cycle(self.sets), self.calls):
            out = self.fn(*s)
        jax.block_until_ready(out)
        took = (time.perf_counter() - begin) / self.calls
        self.best = min(self.best, took)
        self.times.append(took)
        self.calls = max(3, min(1000, int(seconds / took)))

    def spread(self):
        return statistics.median(self.times[1:]) / self.best

    def library(self):
        """The library that XLA's program calls, or how else XLA computes it."""
        text = self.fn.as_text()
        return next((name for mark, name in (("cublas$lt", "cuBLASLt"), ("cublas", "cuBLAS"), ("cudnn", "cuDNN"), ("triton", "Triton")) if mark in text), "a fusion")


def interleave(sides, fn, sets):
    placed = {}
    for side in sides:
        if side.device not in placed:
            placed[side.device] = jax.block_until_ready(jax.device_put(sets, side.device))
        side.prepare(fn, placed[side.device])
    for _ in range(TURNS):
        for side in sides:
            side.turn(0.02)


def operands(shape):
    """Sets of operands that exceed L2 together, all of the same values."""
    batch, m, n, k, layout, _ = shape
    count = max(1, min(MOST_SETS, math.ceil(2 * L2_BYTES / (2 * batch * (m * k + k * n + m * n)))))
    rng = np.random.default_rng(7)

    def draw(*dims):
        return jnp.asarray(rng.standard_normal(dims, dtype=np.float32) * 0.5, dtype=jnp.bfloat16)

    a_dims = (batch, m, k) if layout[0] == "N" else (batch, k, m)
    b_dims = (batch, k, n) if layout[1] == "N" else (batch, n, k)
    first = [draw(*a_dims), draw(*b_dims), draw(n)]
    return [first] + [[jnp.copy(x) for x in first] for _ in range(count - 1)]


def measure(shape, sides, library=None):
    """A row: ours, XLA, and with `library` XLA's calls of cuBLASLt, interleaved."""
    batch, m, n, k, layout, epilogue = shape
    fn, sets = program(layout, epilogue), operands(shape)
    ours, theirs = sides
    everyone = [*sides, *[library] * (library is not None)]
    interleave(everyone, fn, sets)
    x, y = (np.asarray(s.out[0, : min(m, 2048), : min(n, 2048)], dtype=np.float32) for s in sides)
    worst = float(np.max(np.abs(x - y) / (1 + np.abs(y)))) if x.size else 0.0
    flop = 2 * batch * m * n * k
    row = {"shape": f"{'' if batch == 1 else f'{batch} x '}{m}x{n}x{k}", "layout": layout, "epilogue": epilogue, "us": ours.best * 1e6,
           "peer_us": theirs.best * 1e6, "ratio": theirs.best / ours.best, "tflops": flop / ours.best / 1e12,
           "spread": ours.spread(), "peer_spread": theirs.spread(),
           "compile_ms": ours.compile_ms, "peer_compile_ms": theirs.compile_ms, "difference": worst}  # fmt: skip
    if library:
        row |= {"library_us": library.best * 1e6, "library": library.library()}
    row["own"] = not any(kernel["library"] for kernel in tokamak.explain(fn, *sets[0], tokamak_target="h200").data["kernels"])
    if ours.best < TOGETHER_S and len(sets) > 1:
        interleave(everyone, *together(fn, sets))
        each = min(TOGETHER, len(sets))
        row |= {"device_us": ours.best / each * 1e6, "peer_device_us": theirs.best / each * 1e6}
        row |= {"library_device_us": library.best / each * 1e6} if library else {}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="shapes whose text contains this")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no row after this time")
    parser.add_argument("--out", type=Path, help="a folder for products.json and the page products.md")
    options = parser.parse_args()
    sides, library = (Side("tokamak", OURS), Side("cuda")), Side("cuda", LIBRARY)
    begin, rows = time.perf_counter(), []
    for shape in SHAPES:
        if options.only not in f"{shape[1]}x{shape[2]}x{shape[3]} {shape[4]} {shape[5]}":
            continue
        if time.perf_counter() - begin > options.seconds:
            break
        try:
            row = measure(shape, sides, library)
        except Exception as error:  # a row that fails must not cost the others
            print(f"{shape}: {str(error)[:300]}", flush=True)
            continue
        rows.append(row)
        print(f"{row['shape']:>22} {row['layout']} {row['epilogue']:>10}  {row['us']:9.1f} us  XLA {row['peer_us']:9.1f}  ratio {row['ratio']:5.2f}"
              f"  {row['tflops']:6.1f} TFLOP/s  {'own' if row['own'] else 'library':>7}  compile {row['compile_ms']:6.0f} ms"
              f"  difference {row['difference']:.1e}", flush=True)  # fmt: skip
    if rows:
        print(f"{len(rows)} rows, XLA / Tokamak {common.mean(r['ratio'] for r in rows):.3f} in the geometric mean, least {min(r['ratio'] for r in rows):.3f}")
    if options.out:
        facts = {"command": common.command("bench/run_products.py"), "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
                 "device": jax.devices("cuda")[0].device_kind, "jax": jax.__version__}  # fmt: skip
        common.save(options.out, "products", {"facts": facts, "rows": rows})
        write_pages.write("products", options.out)


if __name__ == "__main__":
    main()
