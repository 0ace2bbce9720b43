#!/usr/bin/env python3
"""Transforms and linear algebra on Tokamak's GPU: values against JAX's CPU, times against XLA's GPU, interleaved in one process.

TOKAMAK_DEVICE=cuda JAX_PLATFORMS=tokamak,cuda,cpu tests/gpu/linear_algebra.py [--only NAME,...] [--seconds 40] [--bits FILE]

--bits FILE: writes a digest of each program's bits, or, if the file exists, reports the differences (from another process)."""
import argparse
import hashlib
import json
import os
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

MOST = 2e-3  # relative to the largest number: products of the checks are TF32


def real(*sizes, seed=0):
    return np.random.default_rng(seed).standard_normal(sizes).astype(np.float32)


def pairs(*sizes, seed=0):
    return (real(*sizes, seed=seed) + 1j * real(*sizes, seed=seed + 1)).astype(np.complex64)


def definite(n, *batch):
    a = real(*batch, n, n)
    return (a @ np.swapaxes(a, -1, -2) + n * np.eye(n)).astype(np.float32)


def well(n, *batch):
    return (real(*batch, n, n) + 2 * np.sqrt(n) * np.eye(n)).astype(np.float32)


# Vectors that are determined only up to a factor are multiplied out.
def qr(a):
    q, r = jnp.linalg.qr(a)
    return q @ r, jnp.swapaxes(q.conj(), -1, -2) @ q


def eigh(a):
    w, v = jnp.linalg.eigh(a)
    return w, (v * w[..., None, :]) @ jnp.swapaxes(v.conj(), -1, -2)


def svd(a):
    u, s, v = jnp.linalg.svd(a, full_matrices=False)
    return s, (u * s[..., None, :]) @ v


def convolution(x, k):
    def loss(k):
        return jnp.sum(jnp.tanh(jnp.fft.irfft(jnp.fft.rfft(x) * jnp.fft.rfft(k))) ** 2)

    return jax.grad(loss)(k)


def cholesky_scan(a):
    def body(c, _):
        factor = jnp.linalg.cholesky(c)
        return 0.5 * factor @ factor.T + 0.5 * a, factor[0, 0]

    return lax.scan(body, a, None, length=20)


def fft_while(x):
    return lax.while_loop(lambda c: jnp.real(c[0]) < 50, lambda c: jnp.fft.ifft(jnp.fft.fft(c) * 1.5), x)


def solves(**how):
    return lambda a, b: lax.linalg.triangular_solve(a, b, **how)


PROGRAMS = {
    "fft 2^20": (jnp.fft.fft, pairs(1 << 20)),
    "fft 1000": (jnp.fft.fft, pairs(1000)),
    "fft 64x1009": (jnp.fft.fft, pairs(64, 1009)),
    "ifft 1000": (jnp.fft.ifft, pairs(1000)),
    "rfft 4096x256": (jnp.fft.rfft, real(4096, 256)),
    "irfft 4096x256": (jnp.fft.irfft, pairs(4096, 129)),
    "irfft 32x255": (lambda x: jnp.fft.irfft(x, n=255), pairs(32, 128)),
    "fft2 1024": (jnp.fft.fft2, pairs(1024, 1024)),
    "irfft2 512": (jnp.fft.irfft2, pairs(512, 257)),
    "fft3 128": (jnp.fft.fftn, pairs(128, 128, 128)),
    "fft convolution, gradient": (convolution, real(64, 4096), real(4096, seed=5)),
    "fft in a while": (fft_while, pairs(512)),
    "cholesky 512": (jnp.linalg.cholesky, definite(512)),
    "cholesky 2048": (jnp.linalg.cholesky, definite(2048)),
    "cholesky 64 x 32": (jnp.linalg.cholesky, definite(32, 64)),
    "cholesky, scan": (cholesky_scan, definite(64)),
    "cholesky, gradient": (jax.grad(lambda a: jnp.sum(jnp.tanh(jnp.linalg.cholesky(a)))), definite(256)),
    "solve 50": (jnp.linalg.solve, well(50), real(50, seed=3)),
    "solve 1000": (jnp.linalg.solve, well(1000), real(1000, 8, seed=3)),
    "solve 256 x 16": (jnp.linalg.solve, well(16, 256), real(256, 16, 1, seed=3)),
    "inv 512": (jnp.linalg.inv, well(512)),
    "slogdet 500": (jnp.linalg.slogdet, well(500)),
    "lu 50": (lax.linalg.lu, well(50)),
    "lu 1000": (lax.linalg.lu, well(1000)),
    "lu 30x70": (lax.linalg.lu, real(30, 70)),
    "qr 512": (qr, real(512, 512)),
    "qr 4000x64": (qr, real(4000, 64)),
    "qr 32 x 24x16": (qr, real(32, 24, 16)),
    "eigh 128": (eigh, definite(128)),
    "eigh 512": (eigh, definite(512)),
    "eigh 16 x 32": (eigh, definite(32, 16)),
    "svd 128": (svd, real(128, 128)),
    "svd 500x40": (svd, real(500, 40)),
    "svd 6 x 20x12": (svd, real(6, 20, 12)),
    "lstsq 300x40": (lambda a, b: jnp.linalg.lstsq(a, b)[0], real(300, 40), real(300, seed=9)),
    "triangular 32 x 64": (solves(left_side=True, lower=True), np.tril(well(64, 32)), real(32, 64, 16, seed=2)),
    "triangular 512, right": (solves(left_side=False, lower=False, transpose_a=True), np.triu(well(512)), real(100, 512, seed=2)),
}


def arrays(value):
    return [np.asarray(x) for x in jax.tree.leaves(value)]


def error(got, want):
    worst = 0.0
    for g, w in zip(got, want, strict=True):
        if g.dtype.kind in "biu" or (np.isnan(g) != np.isnan(w)).any():
            worst = max(worst, float((g != w).any()))
        else:
            worst = max(worst, float(np.nanmax(np.abs(g - w), initial=0.0) / np.nanmax(np.abs(w), initial=1e-30)))
    return worst


def micros(fn, given, count):
    begin = time.perf_counter()
    for _ in range(count):
        result = fn(*given)
    jax.block_until_ready(result)
    return (time.perf_counter() - begin) / count * 1e6


def in_turn(fn, ours, theirs):
    """Medians of five, each over enough calls to take 6 ms."""
    counts = [max(1, min(200, int(6000 / micros(fn, given, 1)))) for given in (ours, theirs)]
    times = [[micros(fn, given, count) for given, count in zip((ours, theirs), counts)] for _ in range(5)]
    return [sorted(column)[2] for column in zip(*times)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--bits", default="")
    options = parser.parse_args()
    wanted = [name for name in PROGRAMS if not options.only or name in options.only.split(",")]
    tokamak, cpu = jax.devices("tokamak")[0], jax.devices("cpu")[0]
    peer = jax.devices("cuda")[0] if "cuda" in os.environ.get("JAX_PLATFORMS", "") else None
    begin, failed, bits = time.time(), 0, {}
    for name in wanted:
        fn, given = jax.jit(PROGRAMS[name][0]), PROGRAMS[name][1:]
        on = lambda device: [jax.device_put(a, device) for a in given]
        ours = on(tokamak)
        got = arrays(fn(*ours))
        bits[name] = hashlib.sha256(b"".join(x.tobytes() for x in got)).hexdigest()
        worst = error(got, arrays(fn(*on(cpu))))
        failed += not worst <= MOST
        row = f"{name:28} {'off by' if not worst <= MOST else ''} {worst:.1e}"
        if peer is not None and time.time() - begin < options.seconds:
            us, xla = in_turn(fn, ours, on(peer))
            row += f" {us:9.1f} us, XLA {xla:9.1f}: {xla / us:.2f}"
        print(row, flush=True)
    if options.bits and os.path.exists(options.bits):
        with open(options.bits) as file:
            before = json.load(file)
        differ = [name for name in bits if before.get(name, bits[name]) != bits[name]]
        failed += len(differ)
        print("other bits than before:", ", ".join(differ) or "none")
    elif options.bits:
        with open(options.bits, "w") as file:
            json.dump(bits, file)
    print(f"tally: {len(wanted) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
