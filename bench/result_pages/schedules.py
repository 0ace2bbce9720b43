"""docs/results/schedules.md: schedules of the lowest modeled cost against the preferred ones (bench/schedules.py)."""
from .common import facts_line, machine, mean, table

TITLE = "Choice of schedules by modeled cost"
INTRO = """Each program is one kernel of a random shape. A ratio is the measured time with the schedule of the lowest
modeled cost over that with the schedule that the generator prefers; below 1, choosing by cost is faster.
A row of the first table is a choice with that margin: the preferred schedule is replaced if the modeled
cost of the other one is lower by more than the margin (`src/fusion/choose_schedules.h`). Programs with
the preferred schedule count as 1. Ratios within 3 % of 1 are neither faster nor slower."""
MARGINS = (0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
NOISE = 0.03


def ratio(row):
    preferred, other = row["measured_us"]
    return other / preferred if differs(row) else 1.0


def differs(row):
    return row["schedules"][0] != row["schedules"][1]


def saves(row):
    """The fraction of the modeled cost that the other schedule saves."""
    preferred, other = row["predicted_us"]
    return 1 - other / preferred


def replaced(rows, margin):
    return [row for row in rows if differs(row) and saves(row) > margin]


def margin_line(rows, margin):
    some = replaced(rows, margin)
    ratios = [ratio(row) for row in some]
    return (f"{margin:.0%}", len(some), f"{len(some) / len(rows):.0%}", sum(r < 1 - NOISE for r in ratios), sum(r > 1 + NOISE for r in ratios),
            f"{mean(ratios):.3f}" if ratios else "-", f"{mean(ratios + [1.0] * (len(rows) - len(some))):.3f}",
            f"{min(ratios, default=1):.2f}", f"{max(ratios, default=1):.2f}")  # fmt: skip


def margins(rows):
    return table("margin | replaced | of all | faster | slower | mean of replaced | mean of all | best | worst",
                 (margin_line(rows, margin) for margin in MARGINS), 8)  # fmt: skip


def kind_line(rows, kind):
    some = [row for row in rows if row["kind"] == kind]
    ratios = [ratio(row) for row in some]
    return kind, len(some), sum(map(differs, some)), f"{mean(ratios):.3f}", f"{min(ratios):.2f}", f"{max(ratios):.2f}"


def kinds(rows):
    return table("programs | number | other schedule | mean | best | worst", (kind_line(rows, kind) for kind in dict.fromkeys(r["kind"] for r in rows)), 5)


def row_line(row):
    return (row["kind"], row["shapes"], f"{row['measured_us'][0]:.1f}", f"{ratio(row):.2f}", f"{1 - saves(row):.2f}", f"{row['spread']:.2f}",
            f"`{row['schedules'][0]}`", f"`{row['schedules'][1]}`")  # fmt: skip


def others(rows):
    rows = sorted(filter(differs, rows), key=lambda row: -saves(row))
    return table("program | shapes | preferred us | ratio | predicted ratio | spread | preferred | of lowest cost", map(row_line, rows))


def shown(data):
    rows = data["programs"]
    return [*others(rows), "", *kinds(rows), "", *margins(rows)]


def section(data):
    facts, rows = data["facts"], data["programs"]
    return [f"## {machine(facts)}", "", facts_line(facts), "", *margins(rows), "", *kinds(rows), "",
            "All programs for which the two choices differ:", "", *others(rows)]  # fmt: skip
