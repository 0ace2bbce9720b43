#!/usr/bin/env python3
"""Counts random draws: how many a JAX program makes, and how many threefry ops the passes leave.

    tools/count_random.py                     one line per program and lowering; exit 1 if one differs
    tools/count_random.py --filter cartpole
    tools/count_random.py --values            also runs each before and after: equal bits

Lowerings: `cpu` (threefry as a loop), `written out` (any other platform), `cuda call` (jax_threefry_gpu_kernel_lowering),
each partitionable and not. `left` counts words that are still shifted to the left, as in a rotation: there must be none.
Needs JAX; programs that need flax are skipped without it. Exit 77 without JAX.
"""
import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = 77
DRAWS = {"random_bits", "random_split", "random_fold_in", "threefry2x32"}
LOWERINGS = {"cpu": "cpu", "written out": "tpu", "cuda call": "cuda"}


def programs():
    """name -> (function, arguments). Keys are arguments: a draw from a constant key would be a constant."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    r = jax.random
    key, keys = np.array([3, 7], np.uint32), np.arange(10, dtype=np.uint32).reshape(5, 2)
    x = np.ones((8, 16), np.float32)

    def dropout(k, x):
        return jnp.where(r.bernoulli(k, 0.9, x.shape), x / 0.9, 0.0)

    def chain(k):
        def step(k, _):
            k, sub = r.split(k)
            return k, r.normal(sub, (3,))

        return jax.lax.scan(step, k, None, length=6)

    found = {
        "uniform": (lambda k: r.uniform(k, (7,)), (key,)),
        "normal": (lambda k: r.normal(k, (4, 8)), (key,)),
        "bernoulli": (lambda k: r.bernoulli(k, 0.3, (33,)), (key,)),
        "randint": (lambda k: r.randint(k, (9,), 0, 100), (key,)),
        "permutation": (lambda k: r.permutation(k, 12), (key,)),
        "categorical": (lambda k, x: r.categorical(k, x), (key, x)),
        "split": (lambda k: r.split(k, 5), (key,)),
        "fold_in": (lambda k, i: r.fold_in(k, i), (key, np.uint32(9))),
        "bits of 8": (lambda k: r.bits(k, (21,), jnp.uint8), (key,)),
        "bits of 16": (lambda k: r.bits(k, (21,), jnp.uint16), (key,)),
        "bits of 64": (lambda k: r.bits(k, (21,), jnp.uint64), (key,)),
        "one number": (lambda k: r.uniform(k), (key,)),
        "dropout": (dropout, (key, x)),
        "gradient of dropout": (jax.grad(lambda x, k: dropout(k, x).sum(), 0), (x, key)),
        "vmap of keys": (jax.vmap(lambda k: r.uniform(k, (6,))), (keys,)),
        "vmap of split": (jax.vmap(lambda k: r.split(k, 3)), (keys,)),
        "vmap of fold_in": (jax.vmap(r.fold_in, (None, 0)), (key, np.arange(4, dtype=np.uint32))),
        "scan of keys": (lambda ks: jax.lax.scan(lambda c, k: (c + r.normal(k, (3,)), None), jnp.zeros(3), ks)[0], (keys,)),
        "scan of split": (chain, (key,)),
    }
    found.update(flax_step())
    found.update(bench_programs())
    return found


def flax_step():
    """A training step with two dropouts."""
    try:
        import flax.linen as nn
        import jax
        import jax.numpy as jnp
        import numpy as np
    except ImportError:
        return {}

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            for width in (32, 16):
                x = nn.Dropout(0.1, deterministic=False)(nn.relu(nn.Dense(width)(x)))
            return nn.Dense(1)(x)

    x = np.ones((8, 16), np.float32)
    with jax.default_device(jax.devices("cpu")[0]):
        key = jax.random.PRNGKey(0)
        params = Model().init({"params": key, "dropout": key}, x)

    def step(params, x, key):
        loss = lambda p: jnp.mean(Model().apply(p, x, rngs={"dropout": key}) ** 2)
        value, grads = jax.value_and_grad(loss)(params)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    return {"flax training step": (step, (params, x, np.array([3, 7], np.uint32)))}


def bench_programs():
    sys.path.insert(0, str(ROOT / "bench"))
    import workloads

    found = {}
    for name, size in (("cartpole_naive", "64"), ("cartpole_scan", "64"), ("layernorm_dropout", "64x32")):
        build = workloads.REG[name][0]
        work = build(size)
        found[f"{name} (bench)"] = (work.fn, work.args)
    return found


def draws_in(jaxpr):
    """Draws as written in the program: a loop's body counts once, a function each time it is called."""
    total = 0
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in DRAWS:
            total += 1
            continue
        for value in eqn.params.values():
            for part in value if isinstance(value, (tuple, list)) else (value,):
                part = getattr(part, "jaxpr", part)
                if hasattr(part, "eqns"):
                    total += draws_in(part)
    return total


def lower(fn, args, platform, partitionable, x64=False):
    import jax

    wide = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64
    with jax.threefry_partitionable(partitionable), wide(x64):
        jax.config.update("jax_threefry_gpu_kernel_lowering", platform == "cuda")
        traced = jax.jit(fn).trace(*args)
        text = traced.lower(lowering_platforms=(platform,)).as_text()
    return draws_in(traced.jaxpr.jaxpr), text


def optimized(tokamak, path, more=()):
    done = subprocess.run([str(tokamak), "opt", str(path), *more], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return done.stdout


def instructions(text):
    return len(re.findall(r"^\s+(?:ROOT )?[%\w.-]+ = ", text, re.M))


def count(tokamak, name, fn, args, lowering, partitionable, values=False):
    drawn, text = lower(fn, args, LOWERINGS[lowering], partitionable, "64" in name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.mlir"
        path.write_text(text)
        before = optimized(tokamak, path, ["--passes=inline,dce"])
        after = optimized(tokamak, path, ["--check-values"] if values else [])
    return {
        "name": name,
        "lowering": lowering,
        "partitionable": partitionable,
        "drawn": drawn,
        "ops": len(re.findall(r" threefry2x32\(", after)) + len(re.findall(r" rng-bit-generator\(", after)),
        "left": len(re.findall(r"= [us]32\[[^ ]* shift-left\(", after)) + after.count("cu_threefry2x32"),
        "before": instructions(before),
        "after": instructions(after),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tokamak", default=ROOT / "build/bin/tokamak", type=Path)
    parser.add_argument("--filter", default="")
    parser.add_argument("--values", action="store_true")
    args = parser.parse_args()
    try:
        import jax
    except ImportError:
        print("skipped: no JAX")
        return SKIPPED
    jax.config.update("jax_platforms", "cpu")
    rows, bad = [], 0
    for name, (fn, arguments) in programs().items():
        if args.filter not in name:
            continue
        for lowering in LOWERINGS:
            for partitionable in (True, False):
                row = count(args.tokamak, name, fn, arguments, lowering, partitionable, args.values)
                rows.append(row)
                wrong = row["drawn"] != row["ops"] or row["left"] != 0
                bad += wrong
                print(
                    f"{name:24} {lowering:12} {'partitionable' if partitionable else '':14} drawn {row['drawn']:3} "
                    f"ops {row['ops']:3} left {row['left']:3}  instructions {row['before']:5} -> {row['after']:5}"
                    f"{'  DIFFERS' if wrong else ''}"
                )
    print(f"tally: {len(rows) - bad} passed, {bad} failed, 0 skipped")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
