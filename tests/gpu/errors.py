#!/usr/bin/env python3
"""errors.py TOKAMAK BACKEND: errors are reported, and the process continues where it can. Also through JAX if it is installed."""
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TOKAMAK, BACKEND = sys.argv[1:3]
PROGRAM = """HloModule m
ENTRY main {
  x = f32[1000] parameter(0)
  e = f32[1000] exponential(x)
  ROOT y = f32[1000] add(e, x)
}
"""
passed = failed = 0

# A device fault is reported when the result is awaited, and from then on; another process is not affected.
FAULT = """
import os, jax, numpy as np
os.environ["TOKAMAK_CHECK"] = "fault"
x = jax.device_put(np.ones(1000, np.float32), jax.devices("tokamak")[0])
y = jax.jit(lambda a: a * 2 + 1)(x)
for turn in range(2):
    try:
        np.asarray(y if turn == 0 else x + 1)
        print("no error")
    except Exception as error:
        print(str(error).replace("\\n", " "))
"""
# The request and the largest allocations are named, and the process continues.
MEMORY = """
import jax, numpy as np, jax.numpy as jnp
device = jax.devices("tokamak")[0]
limit = device.memory_stats()["bytes_limit"]
held = jax.jit(lambda: jnp.zeros((limit // 8,), jnp.float32))()
try:
    jax.jit(lambda a: jnp.broadcast_to(a[:1], (limit // 4 - 1024,)) + 1)(held).block_until_ready()
    print("no error")
except Exception as error:
    print(str(error).replace("\\n", " "))
del held
print("goes on", float(jnp.arange(5, dtype=jnp.float32).sum()))
"""


def check(name, good, words=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print(f"{'passed' if good else 'FAILED'} {name}: {' '.join(words.split())[:600]}", flush=True)


def run(path, *flags, shell="", **env):
    command = [TOKAMAK, "run", str(path), "--seed", "1", "--backend", BACKEND, *flags]
    if shell:
        command = ["bash", "-c", f'{shell}; exec "$@"', "bash", *command]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env}, check=False)


def on_command_line(folder):
    path, cache, right = folder / "p.hlo", folder / "cache", folder / "right.npz"
    path.write_text(PROGRAM)
    subprocess.run([TOKAMAK, "run", path, "--seed", "1", "--backend", "interp", "--outputs", right], check=True, capture_output=True)
    good = ["--expect", str(right)]
    run(path, *good, TOKAMAK_CACHE=str(cache))
    for entry in cache.iterdir() if cache.is_dir() else []:
        data = bytearray(entry.read_bytes())
        data[len(data) // 2] ^= 0xFF
        entry.write_bytes(data)
    done = run(path, *good, TOKAMAK_CACHE=str(cache))
    check("changed cache entries are made again", done.returncode == 0, done.stderr)
    done = run(path, *good, shell="trap '' XFSZ; ulimit -f 0", TOKAMAK_CACHE=str(folder / "full"))
    check("a disk that takes nothing", done.returncode == 0, done.stderr)
    done = run(path, *good, TOKAMAK_CACHE="/proc/tokamak")
    check("a cache folder that cannot be", done.returncode == 0, done.stderr)
    if BACKEND != "cuda":
        return
    done = run(path, CUDA_VISIBLE_DEVICES="-1")
    check("no GPU", done.returncode == 4 and "TK420" in done.stderr, f"{done.returncode} {done.stderr}")
    done = run(path, TOKAMAK_CHECK="fault")
    check("a kernel's fault", done.returncode == 70 and "TK4203" in done.stderr and "launched last" in done.stderr,
          f"{done.returncode} {done.stderr}")  # fmt: skip
    done = run(path, *good)
    check("the next process", done.returncode == 0, done.stderr)


def through_jax():
    def python(text):
        return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)

    done = python(FAULT)
    lines = done.stdout.splitlines()
    check("a fault at the buffer that it poisons", len(lines) == 2 and all("TK4203" in line for line in lines), done.stdout + done.stderr[-400:])
    done = python(MEMORY)
    said = done.stdout
    check("out of memory", "TK4204" in said and "bytes for" in said and "blocks" in said and "goes on 10.0" in said, said + done.stderr[-400:])


def main():
    with tempfile.TemporaryDirectory() as folder:
        on_command_line(Path(folder))
    if BACKEND == "cuda" and importlib.util.find_spec("jax"):
        through_jax()
    print(f"figure: {passed} of {passed + failed} faults as docs/errors says")
    print(f"tally: {passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


sys.exit(main())
