"""docs/results/products.md: matrix products against XLA on one GPU (bench/run_products.py)."""
from .common import facts_line, machine, mean, table

TITLE = "Matrix products on one GPU"
INTRO = """Products M x N x K in bf16 with f32 accumulation. Layout: of both operands, `N` as written, `T` transposed.
Microseconds per call: back-to-back calls with one wait at the end, the least of several turns that
alternate between both compilers in one process, over operands that exceed the L2 cache together. Below
30 us this is the dispatch time. TFLOP/s are 2 M N K over the time. Plan: a kernel of Tokamak's own, or a
call of the library. Difference: the largest, relative to 1 + |result of XLA|; XLA may split K and round
the parts to bf16."""


def line(row):
    return (f"`{row['shape']}`", row["layout"], row["epilogue"] or "-", f"{row['us']:.1f}", f"{row['peer_us']:.1f}", f"{row['ratio']:.2f}",
            f"{row['tflops']:.0f}", "own" if row["own"] else "library", f"{row['compile_ms']:.0f}", f"{row['peer_compile_ms']:.0f}",
            f"{row['difference']:.1e}")  # fmt: skip


def section(data):
    facts, rows = data["facts"], data["rows"]
    ratios = [row["ratio"] for row in rows]
    return [f"## {machine(facts)}", "", facts_line(facts), "",
            f"XLA's time / Tokamak's: {mean(ratios):.2f} in the geometric mean of {len(rows)}, {min(ratios):.2f} at least.", "",
            *table("shape | layout | with | us | XLA us | XLA / Tokamak | TFLOP/s | plan | compile ms | XLA's | difference", map(line, rows), 8)]  # fmt: skip
