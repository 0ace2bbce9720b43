"""docs/results/planning.md: time of the planners (bench/plan_times.py)."""
from .common import facts_line, machine, table

TITLE = "Planning time"
INTRO = """Greedy: the greedy plan (tier 0) alone, in milliseconds; the next column is per 1,000 instructions.
Search: all planners, without building the kernels of the chosen plan, which has its own column. The last
two columns are the predicted microseconds of a call. Times are CPU time on one core, the best of several."""
# Bars of the fast tier and of the search.
TIER_0_MS, TIER_1_MS = 10.0, 1000.0


def line(name, modes):
    if len(modes) < 2:
        return name, "timeout", *[""] * 7
    greedy, search = modes["greedy"], modes["search"]
    each = 1000 * greedy["greedy_ms"] / max(greedy["instructions"], 1)
    return (name, greedy["instructions"], f"{greedy['greedy_ms']:.2f}", f"{each:.1f}", f"{search['plan_ms']:.1f}", search["kernels_built"],
            f"{search['build_ms']:.1f}", f"{greedy['us']:.6g}", f"{search['us']:.6g}")  # fmt: skip


def bars(results):
    large = [(name, modes) for name, modes in results.items() if len(modes) == 2 and modes["greedy"]["instructions"] >= 1000]
    over = [name for name, modes in large if 1000 * modes["greedy"]["greedy_ms"] / modes["greedy"]["instructions"] > TIER_0_MS]
    late = [name for name, modes in large if modes["search"]["plan_ms"] > TIER_1_MS]
    # By the planner's own cost estimate, which covers only kernels.
    costlier = [name for name, modes in results.items() if len(modes) == 2 and modes["search"]["chosen_us"]
                > min(modes["search"][plan] for plan in ("unfused_us", "greedy_us", "first_us"))]  # fmt: skip
    yield (f"greedy within {TIER_0_MS:g} ms per 1,000 instructions, of programs with at least 1,000", f"{len(large) - len(over)} of {len(large)}",
           ", ".join(over) or "none")  # fmt: skip
    yield f"search within {TIER_1_MS:g} ms, of the same programs", f"{len(large) - len(late)} of {len(large)}", ", ".join(late) or "none"
    yield ("the searched plan costs no more than the unfused, the greedy and the first one", f"{len(results) - len(costlier)} of {len(results)}",
           ", ".join(costlier) or "none")  # fmt: skip


def section(data):
    return [f"## {machine(data['facts'])}", "", facts_line(data["facts"]), f"Costs are estimated for `{data['facts']['target']}`.", "",
            *table("bar | met | not met", bars(data["programs"])), "",
            *table("program | instructions | greedy ms | per 1,000 | search ms | kernels built | building kernels ms | greedy us | search us",
                   (line(name, modes) for name, modes in data["programs"].items()))]  # fmt: skip
