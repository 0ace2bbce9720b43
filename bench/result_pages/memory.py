"""docs/results/memory.md: memory of the CPU backend against JAX's (bench/run_memory.py)."""
from .common import facts_line, machine, mean, table, yes

TITLE = "Memory of the CPU backend against JAX's"
INTRO = """Peak resident memory, in MiB, of a process that builds a workload and calls it three times; the lesser
of two processes. It includes Python, JAX and the compiler. Ratio: Tokamak / JAX."""


def ratio(row):
    return row["peak_kib"]["tokamak"] / row["peak_kib"]["cpu"]


def section(data):
    rows = data["programs"]
    done = sorted((row for row in rows if "peak_kib" in row), key=ratio, reverse=True)
    over = [f"{row['workload']} {row['size']} {ratio(row):.2f}" for row in done if ratio(row) > 1]
    lines = [f"## {machine(data['facts'])}", "", facts_line(data["facts"]), ""]
    lines += table("what | bar | met", ((f"more than JAX: {', '.join(over) or 'none'}", f"none of {len(done)}", yes(not over)),
                                        (f"geometric mean of the ratios: {mean(map(ratio, done)):.2f}", "", "")))  # fmt: skip
    lines += ["", *table("program | Tokamak | JAX | ratio",
                         ((f"{row['workload']} {row['size']}", *(f"{row['peak_kib'][side] / 1024:.0f}" for side in ("tokamak", "cpu")), f"{ratio(row):.2f}")
                          for row in done))]  # fmt: skip
    return lines + [f"| {row['workload']} {row['size']} | {row.get('error') or row.get('skipped')} | | |" for row in rows if "peak_kib" not in row]
