"""docs/results/loops.md: random loops on a GPU (tests/gpu/loops.py)."""
from .common import facts_line, mean, table

TITLE = "Random loops on Tokamak and XLA"
INTRO = """Milliseconds per call, the least of several repetitions that alternate between both compilers in one
process. A seed is a program (`tests/gpu/loop_bodies.py`): a scan, a fori_loop, a while_loop with a
data-dependent trip count, a fori_loop under vmap (`lanes`), or a while_loop under vmap (`each`: a trip
count per lane), with 3 to 9 carried values, 1 to 40 ops and random numbers per iteration. `rows` counts
arrays that iterations read and stack. One kernel: one launch runs all iterations."""


def line(row):
    return (row["seed"], row["loop"], "yes" if row["one_kernel"] else row["why"], row["launches"], f"{row['ms']:.3f}", f"{row['peer_ms']:.3f}",
            f"{row['ratio']:.2f}", f"{row['compile_s']:.1f}", f"{row['peer_compile_s']:.1f}")  # fmt: skip


def section(data):
    rows = data["rows"]
    slower = ", ".join(f"seed {row['seed']} ({row['ratio']:.2f})" for row in rows if row["ratio"] < 1) or "none"
    ratios = [row["ratio"] for row in rows]
    return [f"## {data['facts']['device']}", "", facts_line(data["facts"]), "",
            f"{sum(row['one_kernel'] for row in rows)} of {len(rows)} loops are one kernel. XLA's time / Tokamak's: geometric mean {mean(ratios):.2f}, "
            f"{min(ratios):.2f} to {max(ratios):.1f}. Slower than XLA: {slower}.", "",
            *table("seed | loop | one kernel | launches | Tokamak ms | XLA ms | XLA / Tokamak | compile s | XLA's", map(line, rows))]  # fmt: skip
