"""The plots of bench/paper, from paper.json (a GPU) and paper_cpu.json; nothing is measured. `tools/pictures.py` redraws them."""
import paper_timeline
import svg
from paper_data import CHANGES, COLUMNS, RUNGS, STEPS, WITHOUT_DRAWS, has_ladder, in_which, kernels, load, measured, shown, sizes, unroll_factors

COLUMN_COLORS = (svg.XLA, svg.XLA_VARIANT, svg.TOKAMAK_VARIANT, svg.TOKAMAK)  # in the order of COLUMNS
COLUMN_NAMES = {"rules": "Tokamak, the paper's rules"}
PLAIN = RUNGS[0][1]
HAND = "CUDA by hand, JAX's own draws, "  # the peers that draw the same random numbers


def by_hand(report, which):
    """The peers in CUDA, at the ladder's size."""
    return [peer for peer in report.peers() if peer.get("n") == report.n and "ms" in peer and peer["peer"].startswith(HAND + which)]


def older(report):
    return "; CUDA by hand: in an earlier run" if in_which(report) else ""


def launches(record):
    """Kernels and copies in one call, or nothing where they were not counted on the device."""
    return f"{round(kernels(record) * STEPS):,}" if "device_kernels" in record else ""


def headline(report):
    """The paper's manual changes on XLA, and the unmodified program on Tokamak."""
    rungs = [(label, report.cell(program, "xla") or {}) for label, (_, program, _, _) in zip(CHANGES, RUNGS)]
    ours = report.cell(PLAIN, "tokamak") or {}
    hand = min(by_hand(report, "keys in"), key=lambda peer: peer["ms"], default=None)
    bar = lambda label, record, color: svg.Bar(label, record.get("ms"), color, record.get("device_ms"), launches(record))  # noqa: E731
    groups = [("XLA, rewritten by hand step by step", [bar(label, record, svg.XLA) for label, record in rungs]), ("Tokamak, nothing rewritten", [bar(CHANGES[0], ours, svg.TOKAMAK)])]
    if hand:
        groups.append(("CUDA, written by hand", [svg.Bar("the same random numbers", hand["ms"], svg.BY_HAND, None, f"{hand['kernels']:,}")]))
    plain = rungs[0][1].get("ms")
    title = f"CartPole, {report.n:,} simulations, {STEPS:,} steps"
    if plain and plain > ours.get("ms", plain):
        ratio = plain / ours["ms"]
        title = f"CartPole on Tokamak: unmodified, and {ratio:.{1 if ratio < 10 else 0}f} times as fast as on XLA"
    shades = " Light: the GPU waits for launches." if any("device_ms" in record for _, record in rungs) else ""
    return svg.bars(title, f"Wall time of one call, {report.n:,} simulations of {STEPS:,} steps. Shorter is faster.{shades}", groups, ("milliseconds per call", "ms"),
                    [WITHOUT_DRAWS, measured(report, [r for _, r in rungs] + [ours]) + older(report) * bool(hand) + "."],
                    "launches per call" if launches(ours) else None)  # fmt: skip


def ladder(report):
    """Each manual change on each side."""
    groups, drawn = [], []
    for name, program, words, _ in RUNGS:
        cells = [(COLUMN_NAMES.get(column, title), report.cell(program, column), color) for color, (column, title) in zip(COLUMN_COLORS, COLUMNS)]
        drawn += [record for _, record, _ in cells]
        groups.append((f"{name}: {words}", [svg.Bar(title, record.get("ms"), color) for title, record, color in cells if record]))
    hand = [svg.Bar(peer["peer"].removeprefix(HAND), peer["ms"], svg.BY_HAND) for peer in by_hand(report, "keys")]
    groups = [group for group in groups if group[1]] + ([("CUDA by hand, the random numbers of E0", hand)] if hand else [])
    return svg.bars(f"CartPole, {report.n:,} simulations: the paper's manual changes, step by step", f"Wall time of one call of {STEPS:,} steps. Shorter is faster.",
                    groups, ("milliseconds per call", "ms"), [WITHOUT_DRAWS, measured(report, drawn) + older(report) * bool(hand) + "."])  # fmt: skip


def unrolled(report):
    """E4: time and time of compilation over the unroll factor; None where it was not measured."""
    names = {"cartpole_scan": "plain program (E0)", "cartpole_scan_prerng_noconcat": "no draws, no concatenate (E3)"}
    found = [(kind, factor, side, of[side]) for (kind, factor), of in sorted(unroll_factors(report).items()) for side in ("xla", "tokamak")
             if kind in names and "ms" in of.get(side, {})]  # fmt: skip
    if not found:
        return None
    name = lambda kind, side: f"{shown(side)}, {names[kind]}"  # noqa: E731
    looks = {name(kind, side): (color, kind != PLAIN) for kind in names for side, color in (("xla", svg.XLA), ("tokamak", svg.TOKAMAK))}
    run, compiled = {}, {}
    for kind, factor, side, record in found:
        run.setdefault(name(kind, side), []).append((factor, record["ms"]))
        compiled.setdefault(name(kind, side), []).append((factor, record["compile_s"]))
    return svg.lines(f"CartPole unrolled, {report.n:,} simulations: time to run and time to compile", f"Left: wall time of one call of {STEPS:,} steps. Right: compilation of the program.",
                     [("milliseconds per call (log scale)", run), ("seconds to compile (log scale)", compiled)], "steps per loop iteration (log scale)",
                     [measured(report, [record for _, _, _, record in found]) + "."], looks)  # fmt: skip


def by_size(report):
    """E5: the plain program over the number of simulations; None where it was not measured."""
    series = {shown(side, report).replace("draws", "random numbers"): list(of.items()) for side, of in sizes(report).items()}
    if not series:
        return None
    color = lambda name: svg.XLA if name.startswith("XLA") else svg.TOKAMAK if name.startswith("Tokamak") else svg.BY_HAND  # noqa: E731
    looks = {name: (color(name), report.cuda and name.endswith(", CPU")) for name in series}
    drawn = [record for record in report.all("E5", "sizes", "ladder") if "ms" in record and record["program"].startswith(PLAIN + ":")]
    hand = any(name.startswith("CUDA by hand") for name in series)
    return svg.lines("CartPole, the plain program: time over the number of simulations", f"Wall time of one call of {STEPS:,} steps, everything in the memory of its device.",
                     [("milliseconds per call (log scale)", series)], "simulations (log scale)", [measured(report, drawn) + older(report) * hand + "."], looks)  # fmt: skip


def draw(folder):
    """The plots of the results in a folder: {file name: SVG text}."""
    read, plots = load(folder), {}
    for report, suffix in read:
        plots |= {f"paper_ladder{suffix}.svg": ladder(report) if has_ladder(report) else None, f"paper_unroll{suffix}.svg": unrolled(report), f"paper_sizes{suffix}.svg": by_size(report)}
    if read and has_ladder(read[0][0]):
        plots |= {"paper_headline.svg": headline(read[0][0]), "paper_timeline.svg": paper_timeline.draw(read[0][0])}
    return {name: text for name, text in plots.items() if text}
