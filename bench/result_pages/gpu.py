"""docs/results/gpu.md: the tests on a GPU (tests/gpu/run)."""
from .common import facts_line, table

TITLE = "Tests on a GPU"
INTRO = """The parts of `tests/gpu/run`, each with its reference, its bars and its measured figures. Skipped random
programs are those that need not give the same bits."""


def line(row):
    return row["part"], row["what"], row["against"], *row["counts"], row["figure"], f"{row['seconds']:.0f}", row["result"]


def section(data):
    facts = data["facts"]
    return [f"## {facts['device']}, {facts['cores']} cores", "", facts_line(facts), f"{facts['seconds']:.0f} s in total.", "",
            *table("part | what | reference | passed | failed | skipped | figure | s | result", map(line, data["parts"]))]  # fmt: skip
