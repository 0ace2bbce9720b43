"""docs/results/counters.md: hardware counters before and after fusion (bench/counters.py)."""
from .common import facts_line, table

TITLE = "Hardware counters before and after fusion"
INTRO = """Counters of `ncu` for one call, at a fixed clock: sums over its kernels; registers and occupancy are
means over its launches. A stall is a cycle in which a resident warp issues no instruction. In brackets:
relative to the unfused program of Tokamak. The paper reports for fusion by hand: registers +40 %,
instructions -50 %, stalls -33 %."""
COLUMNS = (("registers", 1), ("instructions", 1e-6), ("stalls", 1e-6), ("bytes", 1e-6), ("occupancy", 1), ("ns", 1e-3))


def shown(value, scale=1.0):
    return "-" if value is None else f"{value * scale:.3g}"


def cell(row, base, key, scale):
    text = shown(row.get(key), scale)
    if base and base is not row and base.get(key) and row.get(key) is not None:
        text += f" ({100 * (row[key] / base[key] - 1):+.0f} %)"
    return text


def line(row, unfused):
    if "why" in row:
        return row["program"], row["side"], row["why"], *[""] * len(COLUMNS)
    base = unfused.get(row["program"]) if row["side"].startswith("Tokamak") else None
    return row["program"], row["side"], row["kernels"], *(cell(row, base, key, scale) for key, scale in COLUMNS)


def section(data):
    rows = data["rows"]
    unfused = {row["program"]: row for row in rows if row["side"].endswith("unfused") and "why" not in row}
    return [f"## {data['facts']['device']}", "", facts_line(data["facts"]), "",
            *table("program | compiler | kernels | registers | instructions, millions | stalls, millions | DRAM MB | occupancy % | us",
                   (line(row, unfused) for row in rows))]  # fmt: skip
