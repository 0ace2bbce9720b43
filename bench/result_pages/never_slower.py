"""docs/results/never_slower.md: searched plans against unfused and greedy ones (bench/never_slower.py)."""
import math
import statistics

from .common import facts_line, machine, mean, table, yes

TITLE = "Searched plans against unfused and greedy plans"
INTRO = """Search: milliseconds per call, the best repetition. None and greedy: their time relative to the
searched plan, the median over repetitions that alternate between all plans (at least 15; 3 for a plan
that is twice as slow). Spread: the same plan measured twice. Break-even: the number of calls after
which the longer compile time of the search is amortized, against none and against greedy."""
SLOWER_BAR, MEAN_BAR = 1.03, 1.5


def over_plan(row, name):
    """Another mode's time relative to the searched plan's: the median over repetitions."""
    return statistics.median(other / own for other, own in zip(row["seconds"][name], row["seconds"]["search"]))  # noqa: B905


def spread(row):
    """The difference between two runs of one plan: half of the repetitions lie within it."""
    logs = sorted(abs(math.log(a / b)) for a, b in zip(row["seconds"]["repeat"], row["seconds"]["search"], strict=True))
    return math.exp(logs[len(logs) // 2])


def break_even(row, name):
    """The number of calls after which the longer compile time of the search is amortized."""
    more_us = row["prepare_us"]["search"] - row["prepare_us"][name]
    saves_us = (statistics.median(row["seconds"][name]) - statistics.median(row["seconds"]["search"])) * 1e6
    return "at once" if more_us <= 0 else "never" if saves_us <= 0 else f"{math.ceil(more_us / saves_us)}"


def is_slower(row):
    return 1 / min(over_plan(row, "none"), over_plan(row, "greedy")) > SLOWER_BAR * spread(row)


def line(row):
    launches = ", ".join(str(row["launches"][mode]) for mode in ("none", "greedy", "search"))
    return (f"{row['workload']} {row['size']}", f"{min(row['seconds']['search']) * 1e3:.3f}", f"{over_plan(row, 'none'):.2f}",
            f"{over_plan(row, 'greedy'):.2f}", f"{spread(row):.2f}", launches, f"{break_even(row, 'none')}, {break_even(row, 'greedy')}")  # fmt: skip


def section(data):
    rows = data["programs"]
    done = sorted((row for row in rows if "seconds" in row), key=lambda row: min(over_plan(row, "none"), over_plan(row, "greedy")))
    slow = [f"{row['workload']} {row['size']}" for row in done if is_slower(row)]
    gain = mean(over_plan(row, "none") for row in done)
    lines = [f"## {machine(data['facts'])}", "", facts_line(data["facts"]), ""]
    lines += table("what | bar | met", ((f"slower than the better of unfused and greedy: {', '.join(slow) or 'none'}", f"none beyond {SLOWER_BAR} x spread", yes(not slow)),
                                        (f"unfused / searched, geometric mean of {len(done)}: {gain:.2f}", f">= {MEAN_BAR}", yes(gain >= MEAN_BAR))))  # fmt: skip
    lines += ["", *table("program | search | none | greedy | spread | launches: none, greedy, search | break-even: none, greedy", map(line, done))]
    return lines + [f"| {row['workload']} {row['size']} | {row.get('error') or row.get('skipped')} | | | | | |" for row in rows if "seconds" not in row]
