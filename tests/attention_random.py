#!/usr/bin/env python3
"""Random attention programs, as JAX users write them, compiled for a GPU and run in the simulator against the interpreter.

- Einsums in several orders of dimensions, and jax.nn.dot_product_attention; one or several heads, grouped or shared keys (GQA, MQA).
- Masks: causal by iota or tril, window, key padding by lengths or by an array, an arbitrary array. Additive biases, ALiBi, soft-cap, dropout.
- Softmax in f32, bf16 or f16, with the division before or after the second product; sigmoid, squared relu and linear attention.
- Forward, and forward with gradients; sizes such as 1, 3, 17, 127 and 777.

A seed decides everything. Each kernel and the results of each program are compared with the interpreter (tokamak kernels --check-values).

    tests/attention_random.py TOKAMAK [SEEDS [FIRST]] [--keep FOLDER] [--print] [--seconds N] [--jobs N]
    tests/attention_random.py TOKAMAK --backend cuda        each kernel on the device against the interpreter (TOKAMAK_CHECK=kernels)
"""
import argparse
import collections
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
try:
    import jax
    import jax.numpy as jnp
except ImportError:
    print("skipped: this Python has no JAX")
    sys.exit(77)

SKIPPED = 77
LENGTHS = [1, 3, 17, 31, 64, 65, 127, 128, 130, 192, 200]
LONG = 777  # rarely: the simulator takes long
HEADS = [3, 8, 16, 16, 17, 32, 32, 64, 64, 80, 128]
MOST_PRODUCTS = 6_000_000  # multiplications of one product: what the simulator runs in about a second
LIMIT_S = 300  # of one program
TYPES = {"bf16": jnp.bfloat16, "f16": jnp.float16, "f32": jnp.float32}


class Attention:
    """A program drawn from a seed: `fn` and the shapes of its arguments."""

    def __init__(self, seed):
        r = self.r = random.Random(seed)
        self.draw_sizes()
        self.type = r.choice(["bf16"] * 4 + ["f16", "f32"])
        self.softmax_type = "f32" if self.type == "f32" or r.random() < 0.7 else self.type
        self.gradient = r.random() < 0.45
        self.library = r.random() < 0.25 and self.type != "f16"  # jax.nn.dot_product_attention; JAX does not lower it in f16 for a CPU
        self.order = r.choice(["bhsd", "bshd", "sbhd"])
        self.transposed = r.random() < 0.15  # scores with keys first
        self.kind = r.choice(["softmax"] * 6 + ["late", "sigmoid", "relu", "linear", "statistics"])
        self.mask = r.choice(["none", "none", "causal", "tril", "window", "lengths", "keys", "array"])
        self.fill = r.choice([-1e9, -1e30, float("-inf")]) if self.softmax_type == "f32" else r.choice([-1e4, float("-inf")])
        self.bias = r.choice(["none", "none", "none", "array", "keys", "alibi"])
        self.cap = r.random() < 0.1
        self.dropout = r.random() < 0.2
        self.scale = r.choice(["before", "after", "none" if self.kind == "softmax" else "after"])
        self.accumulated = r.random() < 0.7  # the product of queries and keys has the type of the softmax; otherwise that of the operands
        self.residual = r.random() < 0.2
        self.arguments, self.names = [], []
        self.fn = self.made()

    def draw_sizes(self):
        r = self.r
        while True:
            self.b, self.heads = r.choice([1, 1, 2]), r.choice([1, 1, 2, 2, 4, 6])
            self.groups = r.choice([self.heads, self.heads, 1, next(d for d in (2, 1) if self.heads % d == 0)])
            self.q, self.k = (r.choice(LENGTHS) if r.random() < 0.96 else LONG for _ in range(2))
            if r.random() < 0.6:
                self.k = self.q
            self.d = r.choice(HEADS)
            self.v = self.d if r.random() < 0.8 else r.choice(HEADS)
            if MOST_PRODUCTS / 1000 <= self.b * self.heads * self.q * self.k * max(self.d, self.v) <= MOST_PRODUCTS or r.random() < 0.1:
                return

    def argument(self, name, shape, of):
        self.names.append(name)
        self.arguments.append(jax.ShapeDtypeStruct(shape, of))

    def title(self):
        parts = [f"b{self.b} h{self.heads}/{self.groups} q{self.q} k{self.k} d{self.d}/{self.v} {self.type} softmax {self.softmax_type}"]
        parts += ["jax.nn" if self.library else f"{self.order}{' transposed' if self.transposed else ''} {self.kind} scale {self.scale}"]
        parts += [f"mask {self.mask} {self.fill:g}", f"bias {self.bias}", *["cap"] * self.cap, *["dropout"] * self.dropout, *["residual"] * self.residual,
                  *["gradient"] * self.gradient]  # fmt: skip
        return ", ".join(parts)

    def made(self):
        of = TYPES[self.type]
        if self.library:
            self.order, self.v, self.transposed = "bshd", self.d, False
        sizes = {"q": dict(b=self.b, h=self.heads, s=self.q, d=self.d), "k": dict(b=self.b, h=self.groups, s=self.k, d=self.d),
                 "v": dict(b=self.b, h=self.groups, s=self.k, d=self.v)}  # fmt: skip
        for name, size in sizes.items():
            self.argument(name, tuple(size[c] for c in self.order), of)
        if self.mask == "lengths":
            self.argument("lengths", (self.b,), jnp.int32)
        elif self.mask in ("keys", "array"):
            self.argument("mask", (self.b, self.k) if self.mask == "keys" else (self.b, 1, self.q, self.k), jnp.bool_)
        if self.bias in ("array", "keys"):
            self.argument("bias", (1, self.heads, self.q, self.k) if self.bias == "array" else (self.b, 1, 1, self.k), of if self.library else jnp.float32)
        if self.dropout and not self.library:
            self.argument("key", (2,), jnp.uint32)
        out = dict(b=self.b, h=self.heads, s=self.q, d=self.v)
        shape = tuple(out[c] for c in self.order)
        if self.residual:
            self.argument("residual", shape, of)
        forward = self.of_library if self.library else self.by_hand

        def program(*arguments):
            given = dict(zip(self.names, arguments))
            y = forward(given)
            return y + given["residual"] if self.residual else y

        if not self.gradient:
            return program
        self.argument("slope", shape, of)

        def both(*arguments):
            *arguments, slope = arguments
            rest = arguments[3:]
            y, back = jax.vjp(lambda q, k, v: program(q, k, v, *rest), *arguments[:3])
            return (y[0] if isinstance(y, tuple) else y), back((slope, jnp.zeros_like(y[1])) if isinstance(y, tuple) else slope)

        return both

    def live(self, given, i, j):
        """Which scores count, by row i and column j of queries and keys; None: all."""
        if self.mask in ("causal", "tril"):
            return i >= j
        if self.mask == "window":
            return (i >= j) & (i - j < 5) | (j == 0)
        if self.mask == "lengths":
            return (j < given["lengths"][:, None, None, None] * (self.k // 4 + 1)) | (j == 0)
        if self.mask == "keys":
            return given["mask"][:, None, None, :] | (j == 0)
        if self.mask == "array":
            return given["mask"] | (j == 0)
        return None

    def of_library(self, given):
        more = {}
        if self.mask in ("causal", "tril"):
            more["is_causal"] = True
        elif self.mask == "window" and self.q == self.k:
            more["local_window_size"] = (4, 0)
        elif self.mask == "lengths":
            more["key_value_seq_lengths"] = jnp.minimum(given["lengths"] * (self.k // 4) + 1, self.k)
        elif self.mask in ("keys", "array"):
            mask = given["mask"] if self.mask == "array" else given["mask"][:, None, None, :]
            more["mask"] = mask | (jnp.arange(self.k) == 0)
        if self.bias in ("array", "keys"):
            more["bias"] = given["bias"]
        return jax.nn.dot_product_attention(given["q"], given["k"], given["v"], **more)

    def by_hand(self, given):
        q, k, v = given["q"], given["k"], given["v"]
        of, soft = TYPES[self.type], TYPES[self.softmax_type]
        if self.groups != self.heads:  # keys of a group of heads
            axis = self.order.index("h")
            k, v = (jnp.repeat(x, self.heads // self.groups, axis=axis) for x in (k, v))
        factor = self.d**-0.5
        if self.scale == "before":
            q = q * jnp.asarray(factor, of)
        letters = {"q": self.order.replace("s", "q").replace("d", "e"), "k": self.order.replace("s", "k").replace("d", "e"), "v": self.order.replace("s", "k")}
        scores = "bhkq" if self.transposed else "bhqk"
        s = jnp.einsum(f"{letters['q']},{letters['k']}->{scores}", q, k, preferred_element_type=soft if self.accumulated else of)
        s = s.astype(soft)
        if self.scale == "after":
            s = s * jnp.asarray(factor, soft)
        shape = (self.q, self.k)
        i, j = (jax.lax.broadcasted_iota(jnp.int32, shape, axis) for axis in (0, 1))
        turned = (lambda x: jnp.swapaxes(x, -1, -2)) if self.transposed else (lambda x: x)
        if self.cap:
            s = 5 * jnp.tanh(s / 5)
        if self.bias in ("array", "keys"):
            s = s + turned(given["bias"]).astype(soft)
        elif self.bias == "alibi":
            slopes = jnp.exp2(-jnp.arange(1, self.heads + 1, dtype=jnp.float32))[:, None, None]
            s = s + turned(-slopes * jnp.abs(i - j)).astype(soft)
        live = jnp.tril(jnp.ones(shape, bool)) if self.mask == "tril" else self.live(given, i, j)
        axis = -2 if self.transposed else -1
        plain = self.kind in ("sigmoid", "relu", "linear")
        if live is not None:
            s = jnp.where(turned(live), s, jnp.asarray(0 if self.kind in ("relu", "linear") else self.fill, soft))
        total = None
        if self.kind in ("late", "statistics"):
            most = jax.lax.stop_gradient(jnp.max(s, axis, keepdims=True))
            p = jnp.exp(s - most)
            total = jnp.sum(p, axis, keepdims=True)
        elif plain:
            share = jnp.asarray(1 / self.k, soft)  # so that results stay near 1: their tolerance is absolute there
            p = {"sigmoid": jax.nn.sigmoid, "relu": lambda x: jnp.square(jax.nn.relu(x)) * share, "linear": lambda x: x * share}[self.kind](s)
        else:
            p = jax.nn.softmax(s, axis)
        if self.dropout:
            keep = jax.random.bernoulli(jax.random.wrap_key_data(given["key"], impl="threefry2x32"), 0.9, p.shape)
            p = jnp.where(keep, p / jnp.asarray(0.9, p.dtype), jnp.zeros((), p.dtype))
        out = self.order.replace("s", "q")
        y = jnp.einsum(f"{scores},{letters['v']}->{out}", p.astype(of), v, preferred_element_type=jnp.float32 if total is not None else None)
        if total is not None:
            sums = jnp.einsum(f"{scores.replace('k', '')}->{out.replace('d', '')}", jnp.squeeze(total, axis).astype(jnp.float32))
            y = (y / sums[..., None]).astype(of)
            if self.kind == "statistics" and not self.residual:
                return y, jnp.log(sums) + jnp.einsum(f"{scores.replace('k', '')}->{out.replace('d', '')}", jnp.squeeze(most, axis).astype(jnp.float32))
        return y.astype(of)

    def hlo(self):
        return jax.jit(self.fn, keep_unused=True).lower(*self.arguments).as_text("hlo")


def check(tokamak, path, more, backend):
    """(None or what is wrong, what the plan consists of)"""
    command = [tokamak, "kernels", str(path), "--target", "cuda", "--check-values", *more]
    if backend:
        command = [tokamak, "run", str(path), "--backend", backend, "--seed", "1", *more]
    environment = {**os.environ, **({"TOKAMAK_CHECK": "kernels"} if backend else {})}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=environment)
    except subprocess.TimeoutExpired:
        return f"not done after {LIMIT_S} s", []
    if backend:
        return ((done.stderr.strip() or done.stdout.strip())[-600:] if done.returncode else None), []
    kernels = done.stdout.split("\nkernel ")
    parts = ["one step"] * bool(re.search(r"^1 launches, 0 host", done.stdout, re.M)) + ["asynchronous multiplies"] * any("multiply async" in k for k in kernels)
    parts += ["both products in one kernel"] * any(len(set(re.findall(r"multiply async (\w+)", k))) > 1 for k in kernels)
    return ((done.stderr.strip() or done.stdout.strip())[-600:] if done.returncode else None), parts


def report(one, kinds, options):
    """Reports a program that fails; whether it does."""
    seed, title, more, path, result = one
    wrong, parts = result.result()
    kinds.update(parts)
    if wrong:
        print(f"FAILED seed {seed} {' '.join(more)}: {title}\n{wrong}\n", flush=True)
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            (options.keep / path.name).write_text(path.read_text())
    path.unlink()
    return bool(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokamak")
    parser.add_argument("seeds", nargs="?", type=int, default=60)
    parser.add_argument("first", nargs="?", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="a folder for the programs that fail")
    parser.add_argument("--print", action="store_true", help="print the programs and check nothing")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no program after this time")
    parser.add_argument("--backend", help="run on this backend instead of simulating the kernels")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    failed, checked, kinds, end = 0, 0, collections.Counter(), time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        running = collections.deque()
        for seed in range(options.first, options.first + options.seeds):
            if time.monotonic() > end:
                break
            drawn = Attention(seed)
            text = drawn.hlo()
            if options.print:
                print(f"// seed {seed}: {drawn.title()}\n{text}")
                continue
            path = Path(folder) / f"attention_{seed}.hlo"
            path.write_text(f"// tests/attention_random.py, seed {seed}: {drawn.title()}\n{text}")
            more = ["--schedule", "preferred"] if seed % 2 else []  # tiles that cost alone would choose for larger arrays only
            running.append((seed, drawn.title(), more, path, pool.submit(check, options.tokamak, path, more, options.backend)))
            while running and (running[0][-1].done() or len(running) > options.jobs):
                failed += report(running.popleft(), kinds, options)
                checked += 1
        for one in running:
            failed += report(one, kinds, options)
            checked += 1
    if not options.print:
        parts = ", ".join(f"{part}: {count}" for part, count in sorted(kinds.items()))
        print(f"{checked} attention programs, {failed} failed" + (f"; plans with {parts}" if parts else ""))
        print(f"tally: {checked - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
