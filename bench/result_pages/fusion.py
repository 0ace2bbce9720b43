"""docs/results/fusion.md: fusion strategies (bench/fusion_ladder.py)."""
from .common import facts_line, mean, table

TITLE = "Fusion strategies compared"
INTRO = """`+instruction` to `+horizontal` add the four passes of the paper one by one ([paper.md](../paper.md));
`greedy` and `search` are Tokamak's planners. `-`: rejected, or not done after 20 s. Kernels are
launches, library calls, host steps and copies, loops counted once. Bytes are what kernels and library
calls read and write, loops times their iterations. A time is the sum over kernels, each measured alone."""
RUNGS = ("none", "+instruction", "+merger", "+multi-output", "+horizontal", "greedy", "search")


def shown(number):
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= scale:
            return f"{number / scale:.3g}{unit}"
    return str(number)


def ladder(rows, key, value, text):
    """A row per workload that has a rung, and the geometric means of `none` over each rung, over workloads that have all rungs."""
    lines = [(f"{row['name']} {row['size']}", *(text(row[key][rung]) if row[key].get(rung) else "-" for rung in RUNGS))
             for row in rows if any(row[key].values())]  # fmt: skip
    full = [row for row in rows if all(row[key].get(rung) for rung in RUNGS)]
    means = [mean(value(row[key]["none"]) / value(row[key][rung]) for row in full if value(row[key]["none"]) and value(row[key][rung])) for rung in RUNGS]
    lines.append((f"**geometric mean of none / rung ({len(full)})**", *(f"{of:.2f}" for of in means)))
    return table(" | ".join(["workload", *RUNGS]), lines, right=len(RUNGS))


def section(data):
    facts, rows = data["facts"], data["programs"]
    lines = [f"## {facts['what']}", "", facts_line(facts), *([facts["note"]] if facts.get("note") else []), ""]
    if "time" in rows[0]:
        return [*lines, *ladder(rows, "time", lambda c: c, lambda c: f"{c * 1e6:,.0f}")]
    for title, key, of in (("Kernels on a CPU of 2 cores", "host", "kernels"), ("Bytes on a CPU of 2 cores", "host", "bytes"),
                           ("Kernels on an H200", "h200", "kernels"), ("Bytes on an H200", "h200", "bytes")):  # fmt: skip
        lines += [f"### {title}", "", *ladder(rows, key, lambda c, of=of: c[of], lambda c, of=of: shown(c[of]) if of == "bytes" else c[of]), ""]
    return lines[:-1]
