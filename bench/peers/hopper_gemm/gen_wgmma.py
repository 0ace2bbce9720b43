#!/usr/bin/env python3
"""Writes gemm_wgmma.cuh next to this script: one wgmma wrapper per N.  A code generator needs only the N it uses."""
import os

WIDTHS = [32, 64, 96, 128, 192, 256]
HEAD = [
    "// Written by gen_wgmma.py.  D[64 x N] (f32, N/2 registers a thread) += A[64 x 16] * B[16 x N], both operands",
    "// through shared-memory descriptors.  TA/TB: 0 = the operand is K-major in shared memory, 1 = M-major / N-major.",
    "// scale_d == 0 ignores the old content of D (first k-step of a tile).",
    "template <int F16, int TA, int TB> struct Wgmma {",
]


def joined(parts, count, step):
    """Yields lines of `step` parts; every line but the last ends with a comma."""
    for first in range(0, count, step):
        yield parts[first:first + step], "," if first + step < count else ""


def wrapper(n):
    """Returns the lines of the wrapper for one N."""
    r = n // 2
    names = [f"%{i}" for i in range(r)]
    operands = [f'"+f"(d[{i}])' for i in range(r)]
    out = [f'#define HG_WGMMA_ASM_{n}(T) asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{r + 2}, 0;\\n" \\',
           f'        "wgmma.mma_async.sync.aligned.m64n{n}k16.f32." T "." T " {{" \\']
    out += [f'        "{",".join(part)}{end}" \\' for part, end in joined(names, r, 16)]
    out.append(f'        "}}, %{r}, %{r + 1}, p, 1, 1, %{r + 3}, %{r + 4};\\n}}\\n" : \\')
    out += [f'        {", ".join(part)}{end} \\' for part, end in joined(operands, r, 8)]
    out.append('        : "l"(da), "l"(db), "r"(scale_d), "n"(TA), "n"(TB))')
    out.append(f"  static __device__ __forceinline__ void mma(float (&d)[{r}], u64 da, u64 db, int scale_d) {{")
    out.append(f'    if constexpr (F16) HG_WGMMA_ASM_{n}("f16"); else HG_WGMMA_ASM_{n}("bf16");')
    return out + ["  }", f"#undef HG_WGMMA_ASM_{n}"]


def main():
    """Writes the header."""
    lines = HEAD + [line for n in WIDTHS for line in wrapper(n)] + ["};"]
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gemm_wgmma.cuh")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
