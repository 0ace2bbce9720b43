"""docs/results/cuda.md: Tokamak against XLA on a GPU (bench/run_cuda.py)."""
from .common import facts_line, mean, table

TITLE = "Tokamak and XLA on one GPU"
INTRO = """Microseconds per call: back-to-back calls with one wait at the end, the least of several repetitions
that alternate between both compilers in one process. Below 60 us this is the dispatch time. GB/s
counts inputs and results once. Of copy: the time of a copy kernel for the same bytes / Tokamak's time.
Compile: milliseconds of the first compilation, without a cache. Difference: the largest of all results
that are small enough to fetch."""
DISPATCH_US = 60


def line(r):
    copy = f"{r['of_copy']:.2f}" if "of_copy" in r else ""
    off = "-" if r["difference"] is None else f"{r['difference']:.1e}"
    return (r["name"], r["size"], f"{r['us']:.1f}", f"{r['peer_us']:.1f}", f"{r['ratio']:.2f}", f"{r['gbs']:.0f}", copy, f"{r['compile_ms']:.0f}",
            f"{r['peer_compile_ms']:.0f}", off)  # fmt: skip


def section(data):
    facts, rows = data["facts"], data["rows"]
    slower = ", ".join(f"{r['name']} {r['size']} {r['ratio']:.2f}" for r in rows if r["ratio"] < 0.95) or "none"
    large = [r for r in rows if min(r["us"], r["peer_us"]) >= DISPATCH_US]
    lines = [f"## {facts['device']}: {facts['what']}", "", facts_line(facts), "",
             f"Geometric means of XLA's time / Tokamak's: {mean(r['ratio'] for r in rows):.2f} over {len(rows)} workloads; "
             f"{mean(r['ratio'] for r in large):.2f} over the {len(large)} that take at least {DISPATCH_US} us on both; below 0.95: {slower}. "
             f"Compile time: {mean(r['compile_ms'] / r['peer_compile_ms'] for r in rows):.2f} of XLA's.", ""]  # fmt: skip
    lines += table("workload | size | Tokamak us | XLA us | XLA / Tokamak | GB/s | of copy | compile ms | XLA's | difference", map(line, rows))
    return lines + [f"\nNot measured: {name}: {why}" for name, why in data["missed"]]
