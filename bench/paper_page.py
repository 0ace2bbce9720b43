"""The page of bench/paper and its plots, from paper.json (a GPU) and paper_cpu.json."""
import json
import re

import svg

STEPS = 1000
RUNGS = [("E0", "cartpole_scan", "the plain program: threefry, concatenate, lax.scan", 1.0), ("E1", "cartpole_scan_prerng", "random numbers precomputed", 1.87),
         ("E3", "cartpole_scan_prerng_noconcat", "and no concatenate", 3.41), ("E4", "cartpole_best_prerng", "and unrolled by 10", 10.5)]  # fmt: skip
COLUMNS = [("xla", "XLA"), ("flags", "XLA, best flags"), ("rules", "Tokamak `rules`"), ("tokamak", "Tokamak")]
FILES = (("paper.json", ""), ("paper_cpu.json", "_cpu"))
REPRODUCED_WITHIN = 1.3  # a factor within this of the paper's counts as reproduced


class Results:
    """The measurements of one run of bench/paper."""

    def __init__(self, data):
        self.data, self.n = data, data["n"]
        self.cuda = data["device"] == "cuda"
        for record in data["records"]:  # the few events that are seen belong to the code around the loop
            if record.get("flags", "").startswith("command buffers"):
                for key in ("device_ms", "device_kernels", "device_copies"):
                    record.pop(key, None)
                record["device_why"] = "the profiler does not see kernels that command buffers launch"

    def all(self, *experiments):
        return [r for r in self.data["records"] if r["experiment"] in experiments]

    def get(self, experiment, program, side):
        label = program if ":" in program else f"{program}:{self.n}"
        return next((r for r in self.all(experiment) if (r["program"], r["side"]) == (label, side)), None)

    def cell(self, program, column):
        """The record of a rung in a column."""
        if column != "flags":
            return self.get("ladder", program, column)
        tried = [r for r in self.all("flags") if r["program"] == f"{program}:{self.n}"]
        plain = [r for r in [self.get("ladder", program, "xla")] if r and tried]  # running without any flag may be best
        return min((r for r in tried + plain if "ms" in r), key=lambda r: r["ms"], default=tried[0] if tried else None)

    def ms(self, program, column, key="ms"):
        return (self.cell(program, column) or {}).get(key)

    def peers(self):
        return self.data.get("peers", [])


def number(value, digits=3):
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.{digits}g}"


def why(record):
    return "-" if record is None else record.get("error", "-").replace("|", "/").replace("\n", " ")[:60]


def kernels(record):
    """Kernels and copies per step; 0.001 is one launch for all steps."""
    if record is None or "ms" not in record:
        return None
    if "device_kernels" in record:
        return record["device_kernels"] + record["device_copies"]
    if "launches" in record:
        return record["launches"] / record["steps"]
    inside = record.get("instructions")
    return None if not inside else inside[1] if record["steps"] > 1 else sum(inside)


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(map(str, row)) + " |" for row in rows), ""]


def facts(report):
    d = report.data
    devices = ", ".join(f"{name} on {kind}" for name, kind in d["devices"].items())
    return [f"`{d['command']}`, {d['date']}: {d['cpu']}, {d['cores']} cores, {d['memory']} GiB, load {d['load']:.1f} at the beginning; {devices}; JAX {d['jax']}; "
            f"commit {d['commit']}; N = {d['n']:,} simulations where nothing else is said; took {d['took_s']:.0f} s.", *[f"Rows that this did not measure: `{old}`." for old in d.get("added_to", [])], ""]  # fmt: skip


def has_ladder(report):
    """Whether there is a rung to show: a run of some experiments alone has none."""
    return any("ms" in record for record in report.all("ladder"))


def ladder(report):
    lines = ["### The ladder (E0, E1, E3, E4)", "",
             f"Milliseconds for {STEPS:,} steps by the clock, the least turn; in brackets the median turn over the least; then how many times faster than the same column's first row. "
             "Drawing the random numbers is in the first row's time and in no other's.", ""]  # fmt: skip
    rows = []
    for name, program, text, paper in RUNGS:
        row = [f"{name}: {text}", f"{paper:g}x"]
        for column, _ in COLUMNS:
            record, base = report.cell(program, column), report.ms(RUNGS[0][1], column)
            if record is None or "ms" not in record:
                row.append(why(record))
                continue
            ratio = f", {base / record['ms']:.2f}x" if base else ""
            flags = f"; {record.get('flags', 'no flag')}" if column == "flags" else ""
            row.append(f"{number(record['ms'])} ({record['ms_median'] / record['ms']:.2f}){ratio}{flags}")
        rows.append(row)
    lines += table(["", "paper", *(title for _, title in COLUMNS)], rows)
    lines += ["Device time (ms), kernels and copies a step, seconds of compilation:" if report.cuda else
              "Kernels and copies a step, seconds of compilation (a CPU has no time of a device of its own):", ""]  # fmt: skip
    rows = []
    for name, program, text, _ in RUNGS:
        row = [f"{name}"]
        for column, _ in COLUMNS:
            record = report.cell(program, column) or {}
            parts = [number(record.get("device_ms"))] if report.cuda else []
            row.append("; ".join([*parts, number(kernels(record or None)), f"{number(record.get('compile_s'), 2)} s"]) if "ms" in record else why(record or None))
        rows.append(row)
    lines += table(["", *(title for _, title in COLUMNS)], rows)
    reasons = sorted({r["device_why"] for r in report.all("ladder", "flags") if "device_why" in r})
    lines += [f"No device time: {reason}." for reason in reasons] + [""] * bool(reasons)
    if not report.cuda:
        lines += ["Of XLA's CPU the kernels are counted in its compiled text: instructions in the loop that are no views, inner loops once. Of Tokamak they are "
                  "launches: 0.001 is one for all steps.", ""]  # fmt: skip
    return lines + verdict(report)


def verdict(report):
    """Which of the paper's factors were reproduced, on XLA and by both clocks; and the time of the unmodified program on Tokamak."""
    base, found = report.cell(RUNGS[0][1], "xla") or {}, []
    for name, program, text, paper in RUNGS[1:]:
        record = report.cell(program, "xla") or {}
        if "ms" not in record or "ms" not in base:
            continue
        wall = base["ms"] / record["ms"]
        device = base["device_ms"] / record["device_ms"] if "device_ms" in record and "device_ms" in base else None
        if max(wall / paper, paper / wall) <= REPRODUCED_WITHIN:
            found.append(f"- {name} reproduces on XLA by the clock: {wall:.2f}x, in the paper {paper:g}x.")
        elif device and max(device / paper, paper / device) <= REPRODUCED_WITHIN:
            found.append(f"- {name} reproduces on XLA by device time ({device:.2f}x, in the paper {paper:g}x), not by the clock ({wall:.2f}x): the host issues each "
                         "kernel of each step, and the device waits for it.")  # fmt: skip
        else:
            by = f", {device:.2f}x by device time" if device else ""
            found.append(f"- {name} does not reproduce on XLA: {wall:.2f}x{by}, in the paper {paper:g}x. {reason(name, program, report)}")
    ours = report.ms(RUNGS[0][1], "tokamak")
    if ours and "ms" in base:
        hand = next((p for p in report.peers() if p.get("n") == report.n and "keys in each thread" in p["peer"]), None)
        best = min(((report.ms(p, c), f"{t}, {title}") for _, p, t, _ in RUNGS for c, title in COLUMNS[:2] if report.ms(p, c)), default=None)
        found.append(f"- The untouched program takes {number(ours)} ms on Tokamak: {base['ms'] / ours:.1f} times less than on XLA"
                     + (f", {best[0] / ours:.2f} times less than XLA's best rung ({best[1]})" if best else "")
                     + (f"; {ours / hand['ms']:.2f} times what CUDA by hand with the same draws takes ({number(hand['ms'])} ms{in_which(report)})." if hand else "."))  # fmt: skip
    return found + [""]


def reason(name, program, report):
    if not report.cuda:
        return ("The paper's machine was a GPU: on a CPU there are no launches to save; what is saved is memory traffic between loops and the work of the draws themselves, "
                "and a longer body is one that XLA's CPU compiles into more loops.")  # fmt: skip
    call = report.get("E0", "cartpole_scan_rngcall", "xla") or {}
    if "ms" in call:
        rung = report.cell(program, "xla")
        both = "device_ms" in call and "device_ms" in rung
        return (f"The paper's baseline had the draws as a custom call; XLA inlines them today. As a custom call the first row takes {number(call['ms'])} ms by the clock"
                + (f" and {number(call['device_ms'])} ms on the device" if both else "") + f": from there it is {call['ms'] / rung['ms']:.1f}x"
                + (f", {call['device_ms'] / rung['device_ms']:.1f}x on the device" if both else "") + ".")  # fmt: skip
    return "XLA inlines the draws today, which were a custom call in the paper's baseline, and other GPUs have other launch times."


def kernel_ends(report):
    """E0"""
    lines = ["### E0: where XLA's kernels end, and why", "", "The paper counted 6 kernels a step. Causes are those that `tokamak explain --xla-dump` finds in XLA's compiled text.", ""]
    rows = []
    for program in ("cartpole_scan", "cartpole_scan_rngcall", *(p for _, p, _, _ in RUNGS[1:])):
        record = report.get("ladder", program, "xla") or report.get("E0", program, "xla")
        if record is None or "ms" not in record:
            if record or program == "cartpole_scan":
                rows.append([program, why(record), "-", "-"])
            continue
        causes = {}
        for one in record.get("given") or []:
            causes.setdefault(one["cause"], []).append(one["bytes"])
        listed = ", ".join(f"{cause}: {len(of)} ({number(sum(of))} B)" for cause, of in sorted(causes.items(), key=lambda c: -len(c[1]))) or "-"
        rows.append([program, number(kernels(record)), number(record["ms"]), listed])
    lines += table(["program", "kernels and copies a step", "ms", "values stored between kernels, by cause"], rows)
    for program in ("cartpole_scan", "cartpole_scan_rngcall"):
        lines += each_end(program, (report.get("ladder", program, "xla") or report.get("E0", program, "xla") or {}).get("given") or [])
    if not report.cuda:
        lines += ["RNG as a custom call: `jax_threefry_gpu_kernel_lowering` exists on GPUs only.", ""]
    ours = report.cell("cartpole_scan", "tokamak") or {}
    for rule, outcome, because, before, after in ours.get("loops", []):
        lines += [f"Tokamak, the same program: `{rule}` {outcome} ({because}): {number(after)} us predicted, {number(before)} the other way."]
    return lines + [""] * bool(ours.get("loops"))


def each_end(program, given):
    """Every value that one kernel stores for another, aggregated."""
    if not given:
        return []
    rows = [[f"`{b['from']}`", f"`{b['to']}`", number(b["bytes"]), b["cause"], f"`{b['rule']}`" if b["rule"] else "-"] for b in sorted(given, key=lambda b: -b["bytes"])[:60]]
    more = f", the largest {len(rows)} of {len(given)}" if len(given) > len(rows) else ""
    return ["<details>", f"<summary>{program}: each boundary{more}</summary>", "", *table(["from", "to", "bytes", "cause", "rule"], rows), "</details>", ""]


def lifted(report):
    """E2"""
    rows = []
    for record in [r for r in report.all("E2") if r["side"] != "xla"]:
        rows.append([record["program"], record["side"], number(record.get("ms")) if "ms" in record else why(record), number(record.get("device_ms")), number(record.get("compiled_kernels")), number(record.get("device_kernels"))])
    if not rows:
        return []
    lines = ["### E2: the concatenate rule lifted (paper: ~1.1x)", "", "`tokamak_fusion=rules`, with and without `tokamak_lift=concat-multi-user`; `not simplified` leaves out Tokamak's own "
             "algebraic rules, which take slices of a concatenation apart before any fusion rule sees them.", ""]  # fmt: skip
    lines += table(["program", "side", "ms", "device ms", "kernels in the program", "kernels a step, profiled"], rows)
    pairs = [(r, report.get("E2", r["program"], r["side"] + ", lifted")) for r in report.all("E2") if not r["side"].endswith("lifted") and r["side"] != "xla"]
    for plain, lift in pairs:
        if "ms" in plain and lift and "ms" in lift:
            same = plain.get("compiled_kernels") == lift.get("compiled_kernels")
            lines.append(f"- {plain['program']}, {plain['side']}: {plain['ms'] / lift['ms']:.2f}x by lifting"
                         + (": there are as many kernels, the rule rejects nothing here, and what is left is noise." if same else "."))  # fmt: skip
    return lines + [""]


def unrolled(report):
    """E4, the factors"""
    found, lines = {}, []
    for record in report.all("E4"):
        program = record["program"].split(":")[0]
        kind, _, factor = program.rpartition("_u")
        if program.startswith("cartpole_unrolled"):
            kind, factor = "a Python loop, all steps written out", program.removeprefix("cartpole_unrolled")
        found.setdefault((kind, int(factor)), {})[record["side"]] = record
    for factor, program in ((1, "cartpole_scan_prerng_noconcat"), (10, "cartpole_best_prerng")):
        for side in ("xla", "tokamak"):
            if report.cell(program, side):
                found.setdefault(("cartpole_scan_prerng_noconcat", factor), {}).setdefault(side, report.cell(program, side))
    if not found:
        return [], {}
    untouched = report.ms(RUNGS[0][1], "tokamak")
    head = "### E4: unrolling (paper: 3.5x at 10)"
    rows = []
    for (kind, factor), of in sorted(found.items()):
        cells = [number(of[s]["ms"]) if s in of and "ms" in of[s] else why(of.get(s)) for s in ("xla", "tokamak")]
        compiles = [number(of[s].get("compile_s"), 2) if s in of and "ms" in of[s] else "-" for s in ("xla", "tokamak")]
        rows.append([kind, factor, *cells, *compiles])
    lines += [head, "", f"Milliseconds for {STEPS:,} steps and seconds of compilation. The untouched program on Tokamak: {number(untouched)} ms.", ""]
    lines += table(["program", "unroll", "XLA ms", "Tokamak ms", "XLA compiles, s", "Tokamak compiles, s"], rows)
    return lines, {k: v for k, v in found.items() if not k[0].startswith("a Python")}


def crossing(report):
    """E5"""
    series = {}
    for record in report.all("E5", "sizes"):
        program, size = record["program"].split(":")
        if program == "cartpole_scan" and "ms" in record:
            series.setdefault(record["side"], {})[int(size)] = record["ms"]
    for side in ("xla", "tokamak"):
        if report.ms(RUNGS[0][1], side):
            series.setdefault(side, {})[report.n] = report.ms(RUNGS[0][1], side)
    for row in report.peers():
        if "ms" in row and "JAX's own draws, keys in" in row["peer"]:  # the better of its two variants at each size
            by_hand = series.setdefault("CUDA by hand, the same draws", {})
            by_hand[row["n"]] = min(row["ms"], by_hand.get(row["n"], row["ms"]))
    if not series:
        return [], {}
    sizes = sorted({n for of in series.values() for n in of})
    lines = ["### E5: from how many simulations on a GPU pays (paper: about 70)", "",
             f"The plain program, ms for {STEPS:,} steps, everything in the memory of its device.", ""]  # fmt: skip
    lines += table(["N", *(shown(name, report) for name in series)], [[f"{n:,}", *(number(of.get(n)) for of in series.values())] for n in sizes])
    for gpu, cpu in (("xla", "xla, CPU"), ("tokamak", "tokamak, CPU"), ("tokamak", "xla, CPU")):
        both = [n for n in sizes if n in series.get(gpu, {}) and n in series.get(cpu, {})]
        over = [n for n in both if series[gpu][n] < series[cpu][n]]
        if both:
            name = f"{shown(gpu, report)} against {shown(cpu, report)}"
            lines.append(f"- {name}: " + (f"the GPU is faster from N = {over[0]:,} on (of the sizes measured)." if over else "the CPU is faster at every size measured."))
    if not report.cuda:
        lines.append("- There is no GPU here: the crossover is on the GPU machine's page; what this one shows is how both CPU backends grow.")
    lines += [f"- {shown(r['side'], report)}: {r['error']}" for r in report.all("E5") if "error" in r and r["side"] == "tokamak, CPU"]
    return lines + [""], {shown(name, report): of for name, of in series.items()}


def shown(side, report):
    """The display name of a side."""
    return side.replace("xla", "XLA").replace("tokamak", "Tokamak") + (", GPU" if report.cuda and "," not in side else "")


def others(report):
    """E6"""
    if not report.peers():
        return []
    base, best = report.ms(RUNGS[0][1], "xla"), report.ms(RUNGS[3][1], "xla")
    rows = []
    over = lambda ms: [f"{base / ms:.2f}x" if base else "-", f"{best / ms:.2f}x" if best else "-"]  # noqa: E731
    for row in report.peers():
        if "ms" not in row:
            rows.append([row["peer"], row.get("why", "-").replace("|", "/"), "-", "-"])
        elif row["n"] == report.n:
            rows.append([row["peer"], number(row["ms"]), *over(row["ms"])])
    for title, column in (("XLA, the plain program", "xla"), ("Tokamak, the plain program", "tokamak")):
        if ms := report.ms(RUNGS[0][1], column):
            rows.append([f"**{title}**", number(ms), *over(ms)])
    return ["### E6: others (paper: PyTorch eager 0.13x, TorchScript 1.97x of XLA's baseline; CUDA by hand 2.7x over XLA's best, 28x over its baseline)", "",
            *table([f"N = {report.n:,}", "ms", "over XLA's plain program", "over XLA's best rung"], rows),
            *["PyTorch has no loop of its own: each step is a call from Python, of one kernel or of many."] * any("ms" in p and "PyTorch" in p["peer"] for p in report.peers()), ""]  # fmt: skip


def counted(report):
    """E7"""
    rows = []
    for column, title in (("xla", "XLA"), ("rules", "Tokamak `rules`"), ("tokamak", "Tokamak")):
        for program, text in ((RUNGS[0][1], "before (plain)"), (RUNGS[3][1], "after (by hand: E1, E3, unroll 10)")):
            record = report.cell(program, column)
            if record and "ms" in record:
                busy = f"{100 * min(1, record['device_ms'] / record['ms']):.0f} %" if "device_ms" in record else "-"
                rows.append([title, text, number(kernels(record)), number(record.get("device_copies")), busy,
                             f"{number(record.get('temporary_bytes'))}"])  # fmt: skip
    if not rows:
        return []
    return ["### E7: what can be counted, before and after", "",
            "How many kernels a step has, how long of the wall time the device is at work, and what must be stored between kernels.", "", *table(["", "program", "kernels and copies a step", "copies of these", "device at work", "temporary bytes"], rows), *hardware(report), *chosen_of_gpu(report)]  # fmt: skip


def in_which(report):
    """Peers are measured with E6: if only other experiments were measured again, theirs are from the previous run."""
    only = re.search(r"--only (\S+)", report.data["command"])
    return ", in the run before" if report.data.get("added_to") and only and "E6" not in only[1] else ""


def hardware(report):
    """The counters that ncu read."""
    counted = report.data.get("hardware")
    if not counted:
        where = "were not read in this run; those of a step, before and after fusion: [counters.md](counters.md)." if report.cuda else "are not read of a CPU."
        return ["Counters of the hardware (ncu) " + where, ""]
    reasons = {side: of["why"] for side, of in counted.items() if "why" in of}
    rows = []
    for side, of in counted.items():
        for kernel, m in of.get("kernels", {}).items():
            rows.append([side, f"`{kernel}`", m["launches"], number(m.get("ns", 0) / 1e3), number(m.get("read")), number(m.get("written")), number(m.get("instructions")), number(m.get("warps"))])
    lines = [f"Counters of the hardware, {', '.join(reasons)}: {next(iter(reasons.values()))}.", ""] if reasons else []
    if rows:
        lines += ["Counters of the hardware (ncu), means over the launches that it read, of the plain program:", "",
                  *table(["", "kernel", "launches", "us", "bytes read of DRAM", "written", "warps' instructions", "warps active, %"], rows)]  # fmt: skip
    return lines


def chosen_of_gpu(report):
    """The kernels of `tokamak bench --counters`: compiled for an H200, whatever the machine."""
    counted = report.data.get("counters")
    if not counted:
        return []
    if "why" in counted:
        return [f"What kernels take of a GPU was not counted: {counted['why']}", ""]
    rows = []
    for way, title in (("rules", "before: the paper's rules"), ("search", "after: Tokamak")):
        of = counted.get(way, [])
        code = [k for k in of if "registers" in k]
        moved = sum(k["bytes"] * (k["runs"] or 1) for k in of)
        rows.append([title, number(sum(k["runs"] or 1 for k in of)), number(moved), ", ".join(str(k["registers"]) for k in code), number(sum(k["spilled_bytes"] for k in code)),
                     ", ".join(f"{100 * k['occupancy']:.0f} %" for k in code)])  # fmt: skip
    return ["`tokamak bench examples/cartpole.mlir --counters`: the same plain program, its kernels compiled for an H200.", "",
            *table(["", "launches and copies", "bytes moved", "registers of a thread, each kernel", "bytes spilled", "occupancy, each kernel"], rows)]  # fmt: skip


def first_calls(report):
    """E8"""
    rows = []
    for side, title in (("xla", "XLA"), ("tokamak", "Tokamak")):
        of = [r for r in report.all("E8") if r["side"] == side]
        call = next((r["first"] for r in of if "first" in r), {})
        step = next((r["ms"] for r in of if r["program"].startswith("cartpole_naive") and "ms" in r), None)
        eager = next((r["ms"] for r in of if r["program"].startswith("eager") and "ms" in r), None)
        if of:
            rows.append([title, *(number(call.get(k)) for k in ("trace", "lower", "compile", "run")), number(sum(call.values()) if call else None),
                         number(report.ms(RUNGS[0][1], side)), number(step), number(eager)])  # fmt: skip
    if not rows:
        return []
    return ["### E8: the first call, a loop in Python, eager", "", f"Seconds of the first call of the plain program in a new process; then ms for {STEPS:,} steps in lax.scan, as "
            "calls of one jitted step, and without jit (op by op, `jax.disable_jit`).", "",
            *table(["", "trace", "lower", "compile", "run", "first call", "scan", "a call a step", "eager"], rows)]  # fmt: skip


def ladder_plot(report):
    groups = []
    for name, program, text, _ in RUNGS:
        groups.append((f"{name}: {text}", [(title.replace("`", ""), report.ms(program, column), color) for color, (column, title) in zip((0, 1, 2, 4), COLUMNS) if report.cell(program, column)]))
    hand = [(p["peer"].replace("CUDA by hand, JAX's own draws, ", ""), p.get("ms"), 6) for p in report.peers() if p.get("n") == report.n and p["peer"].startswith("CUDA by hand, JAX")]
    return svg.rows(f"CartPole, {report.n:,} simulations: ms for {STEPS:,} steps", [g for g in groups if g[1]] + ([("CUDA by hand", hand)] if hand else []), "ms", where(report))


def where(report):
    kinds = sorted({k for k in report.data["devices"].values() if k != "cpu"}) or [f"{report.data['cpu']}, {report.data['cores']} cores"]
    return f"{', '.join(kinds)}; JAX {report.data['jax']}; {report.data['date']}"


def headline(report):
    """The README's plot: the paper's manual changes on XLA, and the unmodified program on Tokamak."""
    xla = [(text if name != "E0" else "the plain program", report.ms(program, "xla"), 0) for name, program, text, _ in RUNGS]
    ours = [("the plain program", report.ms(RUNGS[0][1], "tokamak"), 4)]
    hand = [(p["peer"].replace("CUDA by hand, JAX's own draws, ", ""), p["ms"], 6) for p in report.peers() if p.get("n") == report.n and "ms" in p and "JAX's own draws, keys in" in p["peer"]]
    groups = [("XLA, rewritten by hand step by step, as in the paper", xla), ("Tokamak, nothing rewritten", ours)] + ([("CUDA by hand, the same draws", hand)] if hand else [])
    return svg.rows(f"CartPole, {report.n:,} simulations, {STEPS:,} steps: milliseconds", groups, "ms", where(report))


def one(report, suffix, out):
    rungs = has_ladder(report)
    plots = {f"paper_ladder{suffix}.svg": ladder_plot(report)} if rungs else {}
    unroll, factors = unrolled(report)
    cross, series = crossing(report)
    if factors:
        drawn = {}
        for (kind, factor), of in factors.items():
            short = "plain" if kind == "cartpole_scan" else "E3"
            for side in ("xla", "tokamak"):
                if "ms" in of.get(side, {}):
                    drawn.setdefault(f"{'XLA' if side == 'xla' else 'Tokamak'}, {short}: ms", []).append((factor, of[side]["ms"]))
                    drawn.setdefault(f"{'XLA' if side == 'xla' else 'Tokamak'}, {short}: compile s", []).append((factor, of[side]["compile_s"]))
        plots[f"paper_unroll{suffix}.svg"] = svg.lines("Unrolling: milliseconds a 1,000 steps, seconds to compile", drawn, "steps a round", "ms, s (log)", where(report))
    if series:
        plots[f"paper_sizes{suffix}.svg"] = svg.lines(f"The plain program: ms for {STEPS:,} steps", {k: list(v.items()) for k, v in series.items()},
                                                      "simulations", "ms (log)", where(report))  # fmt: skip
    for name, text in plots.items():
        (out / name).write_text(text)
    image = lambda name, alt: [f"![{alt}]({name}{suffix}.svg)", ""] if f"{name}{suffix}.svg" in plots else []  # noqa: E731
    return [f"## On {where(report).split(';')[0]}", "", *facts(report), *image("paper_ladder", "the ladder"), *(ladder(report) + kernel_ends(report) if rungs else []), *lifted(report), *unroll,
            *image("paper_unroll", "unrolling"), *cross, *image("paper_sizes", "sizes"), *others(report), *counted(report), *first_calls(report)]  # fmt: skip


def write(out):
    read = [(Results(json.loads((out / name).read_text())), suffix) for name, suffix in FILES if (out / name).is_file()]
    if not read:
        print(f"{out} has no paper.json: bench/paper makes it")
        return 1
    lines = ["`bench/paper` measured this.", "", "# The paper's experiments, reproduced", "",
             "*Operator Fusion in XLA: Analysis and Evaluation* (arXiv 2301.13062) makes CartPole 10.5 times faster on XLA by rewriting it: random numbers precomputed, no "
             "concatenate, unrolled by 10. Here is each step once more, on today's XLA and on Tokamak ([how Tokamak's `rules` are the paper's](../paper.md)).", "",
             "XLA, `rules` and Tokamak are measured in one process, turn by turn; XLA with other flags in a process a set of flags, of which each cell has the fastest. "
             "Programs: `workloads.py`. A row that is missing says why.", ""]  # fmt: skip
    for report, suffix in read:
        lines += one(report, suffix, out)
        tried = report.data.get("flags", {})
        if tried:
            lines += ["Flags tried on XLA: " + "; ".join(f"{name} (`{flags}`{rejected(report, name)})" for name, flags in tried.items()) + ".", ""]
    if has_ladder(read[0][0]):
        (out / "paper_headline.svg").write_text(headline(read[0][0]))
    (out / "paper.md").write_text("\n".join(lines).rstrip() + "\n")
    print(f"{out}/paper.md")
    return 0


def rejected(report, name):
    of = [r for r in report.all("flags") if r.get("flags") == name]
    return "" if any("ms" in r for r in of) or not of else ": " + why(of[0])
