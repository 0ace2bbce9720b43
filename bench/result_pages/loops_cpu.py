"""docs/results/loops_cpu.md: loops on the CPU (bench/run_loops.py)."""
from .common import facts_line, machine, mean, table, yes

TITLE = "Loops on the CPU against JAX's CPU backend"
INTRO = """Milliseconds per call, the best repetition; both backends alternate in one process. Ratio: JAX's time /
Tokamak's. Difference: the largest of all results, relative to the number and its array; for integers
the fraction that differs. `*`: the last bit of a number decides (chaos, a loop that ends when a number
is small, an index found by a comparison). The bar of the scalar loop is a multiple of C's time."""
SCALAR_BAR = 2.0  # Tokamak / C


def ms(value):
    return f"{value * 1e3:.3g}"


def bar_line(name, row):
    t = row["seconds"]
    if name == "scalar":
        of_c = t["tokamak"] / t["c"]
        return (f"10 million iterations on a scalar; C: {ms(t['c'])}", ms(t["tokamak"]), ms(t["cpu"]), f"{of_c:.2f} of C's time", f"<= {SCALAR_BAR:g}",
                yes(of_c <= SCALAR_BAR))  # fmt: skip
    ratio = t["cpu"] / t["tokamak"]
    return name.replace(":", " "), ms(t["tokamak"]), ms(t["cpu"]), f"{ratio:.2f}", f">= {row['bar']:g}", yes(ratio >= row["bar"])


def plain_line(row, ratio):
    t, c = row["seconds"], row["compile_s"]
    return (row["about"], ms(t["tokamak"]), ms(t["cpu"]), f"{ratio:.2f}", f"{row['difference']:.0e}{'*' if row['loose'] else ''}", f"{c['tokamak']:.2f}",
            f"{c['cpu']:.2f}")  # fmt: skip


def section(data):
    lines = [f"## {machine(next(iter(data['facts'].values())))}"]
    if rows := data.get("bars"):
        lines += ["", facts_line(data["facts"]["bars"]), ""]
        lines += table("program | Tokamak | JAX | ratio | bar | met", (bar_line(name, row) for name, row in rows.items()))
    if rows := data.get("plain"):
        ratios = {name: row["seconds"]["cpu"] / row["seconds"]["tokamak"] for name, row in rows.items()}
        slower = [f"{name} {ratio:.2f}" for name, ratio in ratios.items() if ratio < 0.95]
        lines += ["", facts_line(data["facts"]["plain"]),
                  f"{len(rows)} programs as users write them (`bench/loop_programs.py`): geometric mean of the ratios "
                  f"{mean(ratios.values()):.2f}; slower: {', '.join(slower) or 'none'}.", ""]  # fmt: skip
        lines += table("program | Tokamak | JAX | ratio | difference | compile s | JAX's", (plain_line(row, ratios[name]) for name, row in rows.items()))
    return lines
