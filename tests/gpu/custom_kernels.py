#!/usr/bin/env python3
"""custom_kernels.py: kernels of the user in CUDA C++ on the device: hooks, grids, shared memory, aliases, 16-bit floats, errors.
The environment selects the platform and the backend, as for the other JAX parts."""
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np

import tokamak

passed = failed = 0
X = np.linspace(-4, 4, 1 << 20, dtype=np.float32).reshape(1024, 1024)

ELEMENTWISE = """
TOK_KERNEL(scaled) {
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < TOK_X_SIZE) TOK_STORE_0(i, 2 * TOK_LOAD_0(i));
}
"""
ELEMENTWISE_C = "TOK_KERNEL(scaled) { for (int64_t i = 0; i < TOK_X_SIZE; ++i) TOK_STORE_0(i, 2 * TOK_LOAD_0(i)); }"
# A block sums a row in dynamic shared memory: more than the static limit of 48 KiB.
ROWS = """
TOK_KERNEL(rows) {
  extern __shared__ float shared[];
  float sum = 0;
  for (int k = threadIdx.x; k < TOK_X_DIM1; k += blockDim.x) sum += TOK_LOAD_0((int64_t)blockIdx.x * TOK_X_DIM1 + k);
  shared[16384 - blockDim.x + threadIdx.x] = sum;
  __syncthreads();
  for (int n = blockDim.x / 2; n > 0; n /= 2) {
    if (threadIdx.x < n)
      shared[16384 - blockDim.x + threadIdx.x] += shared[16384 - blockDim.x + threadIdx.x + n];
    __syncthreads();
  }
  if (threadIdx.x == 0) TOK_STORE_0(blockIdx.x, shared[16384 - blockDim.x]);
}
"""
TRANSPOSE = """
extern "C" __global__ void turned(const float* x, float* out) {
  int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  if (row < TOK_X_DIM0 && column < TOK_X_DIM1) out[(int64_t)column * TOK_X_DIM0 + row] = x[(int64_t)row * TOK_X_DIM1 + column];
}
"""
BUMP = "TOK_KERNEL(bump) { if (threadIdx.x == 0) out[at[0]] += 10; }"
HALVES = """
TOK_KERNEL(halves) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < TOK_X_SIZE) out[i] = tok_f32_to_bf16(tok_bf16_to_f32(x[i]) * 3);
}
"""
OUT_OF_BOUNDS = """
import numpy as np, jax, tokamak
k = tokamak.kernel(name="wild", cuda="TOK_KERNEL(wild) { out[(1ll << 40) + threadIdx.x] = x[0]; }", out=lambda x: x, grid=(1, 32))
try:
    print(np.asarray(k(np.ones(8, np.float32))))
except Exception as error:
    print(str(error).replace("\\n", " "))
"""


def check(name, good, words=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print(f"{'passed' if good else 'FAILED'} {name}: {' '.join(str(words).split())[:600]}", flush=True)


def equal(name, got, expected):
    got, expected = np.asarray(got), np.asarray(expected)
    check(name, got.dtype == expected.dtype and np.array_equal(got, expected), f"{got.shape} {got.dtype}")


def like(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def failure(call):
    try:
        jax.block_until_ready(call())
        return ""
    except Exception as error:
        return str(error)


def main():
    on_device = os.environ.get("TOKAMAK_DEVICE") == "cuda"
    scaled = tokamak.kernel(name="scaled", cuda=ELEMENTWISE, c=ELEMENTWISE_C, out=lambda x: like(x), hooks=True, vmap="batched",
                            grid=lambda x: (-(-x.size // 256), 256), vjp=lambda args, out, ct: 2 * ct)  # fmt: skip

    def f(x, y):
        return (jnp.exp(-jnp.abs(scaled(jnp.sin(x) * y + 1))) * y[0]).astype(jnp.bfloat16), x.sum(1)

    y = np.linspace(0, 1, 1024, dtype=np.float32)
    plain = jax.jit(f).lower(X, y).compile(compiler_options={"tokamak_fusion": "none"})
    for fused, apart in zip(jax.jit(f)(X, y), plain(X, y)):
        equal("bits with hooks and without fusion", np.asarray(fused).view(np.uint8), np.asarray(apart).view(np.uint8))
    steps = tokamak.explain(f, X, y).data["kernels"]
    custom = [step for step in steps if step["generator"] == "custom"]
    check("explain has one custom step", len(custom) == 1 and len(custom[0]["instrs"]) > 4, [step["name"] for step in steps])
    equal("vmap", jax.jit(jax.vmap(scaled))(X), 2 * X)
    equal("grad", jax.grad(lambda x: scaled(x).sum())(X), np.full_like(X, 2))
    equal("in a loop", jax.lax.fori_loop(0, 10, lambda i, x: scaled(x) * 0.5, X), X)

    if on_device:  # kernels without a C source
        rows = tokamak.kernel(name="rows", cuda=ROWS, hooks=True, out=lambda x: jax.ShapeDtypeStruct(x.shape[:1], x.dtype),
                              grid=lambda x: (x.shape[0], 256, 65536))  # fmt: skip
        whole = np.round(X * 8)
        equal("64 KiB of shared memory, hooks before and after", jax.jit(lambda x: rows(x * 2) + 1)(whole), whole.sum(1) * 2 + 1)
        turned = tokamak.kernel(name="turned", cuda=TRANSPOSE, out=lambda x: jax.ShapeDtypeStruct(x.shape[::-1], x.dtype),
                                grid=lambda x: ((-(-x.shape[1] // 16), -(-x.shape[0] // 16)), (16, 16)))  # fmt: skip
        equal("a grid of two dimensions", turned(X[:100, :77]), X[:100, :77].T)
        bump = tokamak.kernel(name="bump", cuda=BUMP, out=lambda x, at: like(x), aliases={0: 0}, grid=(1, 32))
        equal("in place", jax.jit(lambda x: bump(bump(x + 1, 3), 4))(np.zeros(8, np.float32)), np.float32([1, 1, 1, 11, 11, 1, 1, 1]))
        given = jax.device_put(X[0])
        where = given.unsafe_buffer_pointer()
        donated = jax.jit(lambda x: bump(x, 5), donate_argnums=0)(given)
        check("donated", donated.unsafe_buffer_pointer() == where and donated[5] == X[0, 5] + 10)
        halves = tokamak.kernel(name="halves", cuda=HALVES, out=lambda x: like(x), grid=lambda x: (-(-x.size // 256), 256))
        bits = np.arange(65536, dtype=np.uint16).view(jnp.bfloat16)
        finite = bits[np.isfinite(bits.astype(np.float32))]
        equal("bf16", halves(finite), (finite.astype(np.float32) * 3).astype(jnp.bfloat16))

    broken = tokamak.kernel(name="broken", cuda="TOK_KERNEL(broken) {\n  out[0] = undeclared;\n}\n", c=ELEMENTWISE_C.replace("scaled", "broken"),
                            out=lambda x: like(x), hooks=False, grid=(1, 1))  # fmt: skip
    said = failure(lambda: broken(X))
    check("a source that does not compile", "TK4008" in said and "undeclared" in said and "broken.cu(2)" in said, said)
    missing = tokamak.kernel(name="missing", cuda="TOK_KERNEL(other) {}", c=ELEMENTWISE_C, out=lambda x: like(x), grid=(1, 1))
    said = failure(lambda: missing(X))
    check("a source without the entry point", "TK4008" in said and "TOK_KERNEL(missing)" in said, said)
    equal("the process continues", jax.jit(lambda x: scaled(x) + 1)(X), 2 * X + 1)
    if on_device:
        done = subprocess.run([sys.executable, "-c", OUT_OF_BOUNDS], capture_output=True, text=True, env=os.environ, timeout=60)
        check("an access out of bounds", "TK4203" in done.stdout and done.returncode == 0, done.stdout + done.stderr)
    print(f"tally: {passed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
