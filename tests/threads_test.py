#!/usr/bin/env python3
"""A program has the same bits for any number of threads: each kind of kernel, large enough to be split.

    tests/threads_test.py TOKAMAK
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SUM = """
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

before {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  ROOT e = pred[] compare(a, b), direction=LT
}

max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}
"""
PROGRAMS = {
    "loop": """
  x = f32[700,1003] parameter(0)
  y = f32[700,1003] exponential(x)
  ROOT z = f32[700,1003] multiply(x, y)""",
    "rows": """
  x = f32[701,1003] parameter(0)
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[701] reduce(x, low), dimensions={1}, to_apply=max
  mb = f32[701,1003] broadcast(m), dimensions={0}
  d = f32[701,1003] subtract(x, mb)
  e = f32[701,1003] exponential(d)
  s = f32[701] reduce(e, zero), dimensions={1}, to_apply=sum
  sb = f32[701,1003] broadcast(s), dimensions={0}
  ROOT r = f32[701,1003] divide(e, sb)""",
    "columns": """
  x = f32[1301,517] parameter(0)
  zero = f32[] constant(0)
  ROOT s = f32[517] reduce(x, zero), dimensions={0}, to_apply=sum""",
    "all": """
  x = f32[1048576] parameter(0)
  zero = f32[] constant(0)
  y = f32[1048576] sine(x)
  ROOT s = f32[] reduce(y, zero), dimensions={0}, to_apply=sum""",
    "window": """
  x = f32[8,57,57,33] parameter(0)
  zero = f32[] constant(0)
  ROOT w = f32[8,29,29,33] reduce-window(x, zero), window={size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_1x1_1x0_0}, to_apply=sum""",
    "long window": """
  x = f32[64,4001] parameter(0)
  zero = f32[] constant(0)
  ROOT w = f32[64,3802] reduce-window(x, zero), window={size=1x200}, to_apply=sum""",
    "fft": """
  x = c64[301,1000] parameter(0)
  ROOT w = c64[301,1000] fft(x), fft_type=FFT, fft_length={301,1000}""",
    "triangular-solve": """
  a = f32[200,200] parameter(0)
  b = f32[200,501] parameter(1)
  one = f32[] constant(300)
  ones = f32[200,200] broadcast(one), dimensions={}
  s = f32[200,200] add(a, ones)
  ROOT w = f32[200,501] triangular-solve(s, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE, unit_diagonal=false""",
    "transpose": """
  x = f32[801,1203] parameter(0)
  ROOT t = f32[1203,801] transpose(x), dimensions={1,0}""",
    "dot": """
  x = f32[301,402] parameter(0)
  y = f32[402,503] parameter(1)
  ROOT d = f32[301,503] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
    "batched dot": """
  x = f32[12,64,96] parameter(0)
  y = f32[12,96,80] parameter(1)
  ROOT d = f32[12,64,80] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}""",
    "attention": """
  q = bf16[5,130,33] parameter(0)
  k = bf16[5,200,33] parameter(1)
  v = bf16[5,200,40] parameter(2)
  s = f32[5,130,200] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
  e = f32[5,130,200] exponential(s)
  zero = f32[] constant(0)
  t = f32[5,130] reduce(e, zero), dimensions={2}, to_apply=sum
  b = f32[5,130,200] broadcast(t), dimensions={0,1}
  p = f32[5,130,200] divide(e, b)
  c = bf16[5,130,200] convert(p)
  ROOT o = bf16[5,130,40] dot(c, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}""",
    "scan": """
  x = f32[8,100003] parameter(0)
  zero = f32[] constant(0)
  ROOT s = f32[8,100003] reduce-window(x, zero), window={size=1x100003 pad=0_0x100002_0}, to_apply=sum""",
    "scan of columns": """
  x = f32[70001,24] parameter(0)
  zero = f32[] constant(0)
  ROOT s = f32[70001,24] reduce-window(x, zero), window={size=70001x1 pad=0_70000x0_0}, to_apply=sum""",
    "sort": """
  x = f32[3,100003] parameter(0)
  y = f32[3,100003] parameter(1)
  ROOT s = (f32[3,100003], f32[3,100003]) sort(x, y), dimensions={1}, is_stable=true, to_apply=before""",
    "top-k": """
  x = f32[3,100003] parameter(0)
  ROOT t = (f32[3,9], s32[3,9]) topk(x), k=9, largest=true""",
    "narrow sums": """
  x = bf16[333,2048] parameter(0)
  zero = f32[] constant(0)
  w = f32[333,2048] convert(x)
  s = f32[333] reduce(w, zero), dimensions={1}, to_apply=sum
  ROOT r = bf16[333] convert(s)""",
}


def main():
    tokamak = sys.argv[1]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, body in PROGRAMS.items():
            program = Path(folder, "program.hlo")
            program.write_text(f"HloModule m\n{SUM}\nENTRY main {{{body}\n}}\n")
            results = {}
            for threads in (1, 2, 3, 7):
                out = Path(folder, f"{threads}.npz")
                done = subprocess.run([tokamak, "run", str(program), "--backend", "cpu", "--seed", "1", "--outputs", str(out)],
                                      env=os.environ | {"TOKAMAK_THREADS": str(threads)}, capture_output=True, text=True, check=False)  # fmt: skip
                if done.returncode == 3 and "not part of this build" in done.stderr:
                    print("skipped: there is no cpu backend in this build")
                    sys.exit(77)
                if done.returncode != 0:
                    sys.exit(f"{name}, {threads} threads: {done.stderr.strip()}")
                results[threads] = out.read_bytes()
            for threads, bytes_ in results.items():
                if bytes_ != results[1]:
                    failed += 1
                    print(f"FAILED {name}: {threads} threads have other bits than one")
    print(f"threads: {len(PROGRAMS)} programs, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
