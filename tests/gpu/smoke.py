#!/usr/bin/env python3
"""smoke.py TOKAMAK BACKEND: the machine's devices, one program, the disk cache, and out of memory."""
import os
import subprocess
import sys
import tempfile
import time

TOKAMAK, BACKEND = sys.argv[1:3]
PROGRAM = """HloModule m
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  x = f32[64,1000] parameter(0)
  z = f32[] constant(0)
  e = f32[64,1000] exponential(x)
  s = f32[64] reduce(e, z), dimensions={1}, to_apply=sum
  t = f32[64,1000] broadcast(s), dimensions={0}
  ROOT y = f32[64,1000] divide(e, t)
}
"""
TOO_LARGE = """HloModule m
ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4,50000000000] broadcast(x), dimensions={0}
  z = f32[4,50000000000] cosine(y)
  ROOT s = f32[4,1] slice(z), slice={[0:4], [7:8]}
}
"""
passed = failed = 0


def check(name, good, words=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print(f"{'passed' if good else 'FAILED'} {name}: {words}")


def run(path, *flags, **env):
    begin = time.time()
    done = subprocess.run([TOKAMAK, "run", path, "--seed", "1", *flags], capture_output=True, text=True, env={**os.environ, **env}, check=False)
    return done, time.time() - begin


def main():
    if BACKEND == "cuda":
        print(subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"],
                             capture_output=True, text=True, check=False).stdout.strip())
    with tempfile.TemporaryDirectory() as folder:
        path, large, cache = folder + "/p.hlo", folder + "/l.hlo", folder + "/cache"
        open(path, "w").write(PROGRAM)
        open(large, "w").write(TOO_LARGE)
        expected = folder + "/right.npz"
        run(path, "--backend", "interp", "--outputs", expected)
        for turn in ("compiled", "from the disk cache"):
            done, seconds = run(path, "--backend", BACKEND, "--expect", expected, TOKAMAK_CACHE=cache)
            check(f"softmax, {turn}", done.returncode == 0, f"{seconds:.2f} s {done.stderr[-500:]}")
        for entry in os.listdir(cache) if os.path.isdir(cache) else []:
            with open(os.path.join(cache, entry), "r+b") as file:
                file.truncate(40)
        done, seconds = run(path, "--backend", BACKEND, "--expect", expected, TOKAMAK_CACHE=cache)
        check("softmax, damaged cache", done.returncode == 0, f"{seconds:.2f} s {done.stderr[-500:]}")
        done, _ = run(path, "--backend", BACKEND, "--repeat", "20", TOKAMAK_CACHE=cache)
        check("the same bits 20 times", done.returncode == 0, done.stdout.splitlines()[0] if done.stdout else done.stderr[-500:])
        if BACKEND == "cuda":
            done, _ = run(large, "--backend", BACKEND, "--fusion", "none", TOKAMAK_CACHE=cache)
            check("out of memory is an error", done.returncode == 4 and "TK4204" in done.stderr, f"{done.returncode} {done.stderr[-600:]}")
    print(f"tally: {passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


sys.exit(main())
