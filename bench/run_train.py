#!/usr/bin/env python3
"""Measures training steps end to end: the CPU backend against JAX's own.

    bench/run_train.py                      every program, 7 repetitions
    bench/run_train.py --only cnn --repetitions 3 --name train_cpu

Writes train_cpu.json (--name: another name) and the page train_cpu.md in docs/results. Programs are plain JAX: a CNN of MNIST size and a small
transformer, each with its loss, gradients and Adam, as one jitted function from (parameters, moments, batch) to the next. Both
platforms run in one process and alternate, a batch of steps each; a figure is the best batch, its spread the median over it.
Parameters are passed from step to step (donated), so that every call has other inputs. The losses of both sides are compared.
"""
import argparse
import datetime
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
os.environ["JAX_PLATFORMS"] = "tokamak,cpu"
sys.path.insert(0, str(ROOT / "python"))

import own_python  # noqa: F401, must be first: it may re-execute with another Python
import jax
import jax.numpy as jnp
import numpy as np
import write_pages
from result_pages import common



def adam(parameters, gradients, state, rate=1e-3):
    count, first, second = state
    count = count + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
    scale = rate * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
    parameters = jax.tree.map(lambda p, m, v: p - scale * m / (jnp.sqrt(v) + 1e-8), parameters, first, second)
    return parameters, (count, first, second)


def entropy(logits, labels):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits.astype(jnp.float32)), labels[..., None], axis=-1))


class Cnn:
    """28 x 28 images: two convolutions with max pooling, two dense layers."""

    def __init__(self, batch):
        self.batch = batch

    def parameters(self, random):
        def normal(*shape):
            return (random.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)

        def zeros(n):
            return np.zeros(n, np.float32)

        return {"conv1": normal(3, 3, 1, 32), "bias1": zeros(32), "conv2": normal(3, 3, 32, 64), "bias2": zeros(64),
                "dense1": normal(3136, 128), "bias3": zeros(128), "dense2": normal(128, 10), "bias4": zeros(10)}  # fmt: skip

    def data(self, random):
        images = random.standard_normal((self.batch, 28, 28, 1)).astype(np.float32)
        return images, random.integers(0, 10, self.batch).astype(np.int32)

    def loss(self, p, images, labels):
        def layer(x, kernel, bias):
            x = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = jax.nn.relu(x + bias)
            return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

        x = layer(layer(images, p["conv1"], p["bias1"]), p["conv2"], p["bias2"])
        x = jax.nn.relu(x.reshape(x.shape[0], -1) @ p["dense1"] + p["bias3"])
        return entropy(x @ p["dense2"] + p["bias4"], labels)


class Transformer:
    """A decoder with causal attention over tokens: embedding, layers, logits."""

    def __init__(self, batch, length=128, width=128, heads=4, layers=2, words=512):
        self.batch, self.length, self.width, self.heads, self.layers, self.words = batch, length, width, heads, layers, words

    def parameters(self, random):
        def normal(*shape):
            return (random.standard_normal(shape) * 0.02).astype(np.float32)

        w = self.width
        layers = [{"norm1": np.ones(w, np.float32), "qkv": normal(w, 3 * w), "out": normal(w, w), "norm2": np.ones(w, np.float32),
                   "up": normal(w, 4 * w), "down": normal(4 * w, w)} for _ in range(self.layers)]  # fmt: skip
        return {"words": normal(self.words, w), "positions": normal(self.length, w), "layers": layers, "norm": np.ones(w, np.float32)}

    def data(self, random):
        tokens = random.integers(0, self.words, (self.batch, self.length + 1)).astype(np.int32)
        return tokens[:, :-1], tokens[:, 1:]

    def loss(self, p, tokens, wanted):
        def norm(x, scale):
            mean = x.mean(-1, keepdims=True)
            return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * scale

        def attend(x, layer):
            b, n, w = x.shape
            q, k, v = jnp.split((x @ layer["qkv"]).reshape(b, n, self.heads, -1), 3, axis=-1)
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
            scores = jnp.where(jnp.tril(jnp.ones((n, n), bool)), scores, -1e9)
            return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v).reshape(b, n, w) @ layer["out"]

        x = p["words"][tokens] + p["positions"]
        for layer in p["layers"]:
            x = x + attend(norm(x, layer["norm1"]), layer)
            x = x + jax.nn.gelu(norm(x, layer["norm2"]) @ layer["up"]) @ layer["down"]
        return entropy(norm(x, p["norm"]) @ p["words"].T, wanted)


PROGRAMS = {
    "cnn, batch 32": Cnn(32), "cnn, batch 128": Cnn(128),
    "transformer, batch 4": Transformer(4), "transformer, batch 16": Transformer(16),
}  # fmt: skip


class Side:
    """One platform's run of a program."""

    def __init__(self, program, name):
        random = np.random.default_rng(0)
        self.device = jax.devices(name)[0]
        parameters = jax.device_put(program.parameters(random), self.device)
        zeros = jax.tree.map(jnp.zeros_like, parameters)
        self.data = jax.device_put(program.data(random), self.device)
        self.state = (parameters, (jax.device_put(np.float32(0), self.device), zeros, jax.tree.map(jnp.copy, zeros)))
        self.times, self.losses = [], []

        def step(state, data):
            loss, gradients = jax.value_and_grad(program.loss)(state[0], *data)
            return adam(state[0], gradients, state[1]), loss

        self.step = jax.jit(step, donate_argnums=0)
        begin = time.perf_counter()
        self.run(1)
        self.compile_s = time.perf_counter() - begin

    def run(self, steps):
        for _ in range(steps):
            self.state, loss = self.step(self.state, self.data)
        self.losses.append(float(loss))

    def measure(self, steps):
        begin = time.perf_counter()
        self.run(steps)
        self.times.append((time.perf_counter() - begin) / steps)


def measure(name, program, arguments):
    with jax.default_device(jax.devices("tokamak")[0]):
        ours = Side(program, "tokamak")
    with jax.default_device(jax.devices("cpu")[0]):
        peer = Side(program, "cpu")
    ours.run(1), peer.run(1)
    begin = time.perf_counter()
    peer.run(1)
    steps = max(1, min(50, round(arguments.repetition_seconds / (time.perf_counter() - begin))))
    ours.run(1)
    for _ in range(arguments.repetitions):
        ours.measure(steps)
        peer.measure(steps)
    row = {"program": name, "steps": steps, "ratio": min(peer.times) / min(ours.times), "losses": [ours.losses, peer.losses]}
    for key, side in (("tokamak", ours), ("cpu", peer)):
        row[key] = {"best_ms": min(side.times) * 1e3, "median_ms": statistics.median(side.times) * 1e3, "compile_s": side.compile_s}
    row["loss_difference"] = max(abs(a - b) / max(1e-6, abs(b)) for a, b in zip(ours.losses, peer.losses))
    print(f"{name}: {row['tokamak']['best_ms']:.2f} ms, JAX's CPU {row['cpu']['best_ms']:.2f} ms: {row['ratio']:.2f}x", file=sys.stderr)
    return row


def cpu_name():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="programs whose name holds this text")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--repetition-seconds", type=float, default=0.5, help="a repetition takes JAX's CPU about so long")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results")
    parser.add_argument("--name", default="train_cpu")
    arguments = parser.parse_args()
    rows = [measure(name, program, arguments) for name, program in PROGRAMS.items() if arguments.only in name]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT).stdout.strip()
    facts = {"command": common.command("bench/run_train.py"), "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
             "commit": commit, "cpu": cpu_name(), "cores": os.cpu_count(), "jax": jax.__version__}  # fmt: skip
    common.save(arguments.out, arguments.name, {"facts": facts, "rows": rows})
    print(write_pages.write("train_cpu", arguments.out, arguments.name))


if __name__ == "__main__":
    main()
