"""The page of bench/paper, from paper.json (a GPU) and paper_cpu.json."""
import paper_attention
import paper_plots
from paper_data import COLUMNS, RUNGS, STEPS, has_ladder, in_which, kernels, load, machine, shown, unroll_factors
from paper_data import sizes as size_series

REPRODUCED_WITHIN = 1.3  # a factor within this of the paper's counts as reproduced


def number(value, digits=3):
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.{digits}g}"


def why(record):
    return "-" if record is None else record.get("error", "-").replace("|", "/").replace("\n", " ")[:60]


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(map(str, row)) + " |" for row in rows), ""]


def facts(report):
    d = report.data
    devices = ", ".join(f"{name} on {kind}" for name, kind in d["devices"].items())
    return [f"`{d['command']}`, {d['date']}: {d['cpu']}, {d['cores']} cores, {d['memory']} GiB, load {d['load']:.1f} at the beginning; {devices}. JAX {d['jax']}; "
            f"commit {d['commit']}; N = {d['n']:,} simulations unless stated otherwise; took {d['took_s']:.0f} s.", *[f"Rows of an earlier run: `{old}`." for old in d.get("added_to", [])], ""]  # fmt: skip


def ladder(report):
    lines = ["### The ladder (E0, E1, E3, E4)", "",
             f"Wall time in milliseconds for {STEPS:,} steps, the fastest run; in brackets the median run over the fastest; then the speedup over the first row of the column. "
             "Only the time of the first row includes drawing the random numbers.", ""]  # fmt: skip
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
    lines += ["Device time (ms), kernels and copies per step, seconds of compilation:" if report.cuda else
              "Kernels and copies per step, seconds of compilation (a CPU has no separate device time):", ""]  # fmt: skip
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
        lines += ["XLA's CPU kernels are counted in its compiled text: instructions in the loop except views, inner loops once. Tokamak's are "
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
            found.append(f"- {name} reproduces on XLA in wall time: {wall:.2f}x, in the paper {paper:g}x.")
        elif device and max(device / paper, paper / device) <= REPRODUCED_WITHIN:
            found.append(f"- {name} reproduces on XLA by device time ({device:.2f}x, in the paper {paper:g}x), not in wall time ({wall:.2f}x): the host launches each "
                         "kernel of each step, and the device waits for it.")  # fmt: skip
        else:
            by = f", {device:.2f}x by device time" if device else ""
            found.append(f"- {name} does not reproduce on XLA: {wall:.2f}x{by}, in the paper {paper:g}x. {reason(name, program, report)}")
    ours = report.ms(RUNGS[0][1], "tokamak")
    if ours and "ms" in base:
        hand = next((p for p in report.peers() if p.get("n") == report.n and "keys in each thread" in p["peer"]), None)
        best = min(((report.ms(p, c), f"{t}, {title}") for _, p, t, _ in RUNGS for c, title in COLUMNS[:2] if report.ms(p, c)), default=None)
        found.append(f"- The unmodified program takes {number(ours)} ms on Tokamak: {base['ms'] / ours:.1f} times faster than on XLA"
                     + (f", {best[0] / ours:.2f} times faster than XLA's best row ({best[1]})." if best else ".")
                     + (f" Handwritten CUDA with the same random numbers takes {number(hand['ms'])} ms{in_which(report)}: Tokamak takes {ours / hand['ms']:.2f} times as long." if hand else ""))  # fmt: skip
    return found + [""]


def reason(name, program, report):
    if not report.cuda:
        return ("The paper used a GPU. A CPU has no launches to save; the change saves memory traffic between loops and the drawing of random numbers. "
                "XLA's CPU backend compiles a longer body into more loops.")  # fmt: skip
    call = report.get("E0", "cartpole_scan_rngcall", "xla") or {}
    if "ms" in call:
        rung = report.cell(program, "xla")
        both = "device_ms" in call and "device_ms" in rung
        return (f"The paper's baseline had the draws as a custom call; XLA inlines them today. As a custom call the first row takes {number(call['ms'])} ms of wall time"
                + (f" and {number(call['device_ms'])} ms on the device" if both else "") + f": from there it is {call['ms'] / rung['ms']:.1f}x"
                + (f", {call['device_ms'] / rung['device_ms']:.1f}x on the device" if both else "") + ".")  # fmt: skip
    return "XLA inlines the draws today, which were a custom call in the paper's baseline, and other GPUs have other launch times."


def kernel_ends(report):
    """E0"""
    lines = ["### E0: where XLA's kernels end, and why", "", "The paper counted 6 kernels per step. `tokamak explain --xla-dump` finds the causes in XLA's compiled text.", ""]
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
    lines += table(["program", "kernels and copies per step", "ms", "values stored between kernels, by cause"], rows)
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
    lines = ["### E2: the concatenate rule lifted (paper: ~1.1x)", "", "`tokamak_fusion=rules`, with and without `tokamak_lift=concat-multi-user`; `not simplified` omits Tokamak's own "
             "algebraic rules, which replace slices of a concatenation before any fusion rule sees them.", ""]  # fmt: skip
    lines += table(["program", "side", "ms", "device ms", "kernels in the program", "kernels per step, profiled"], rows)
    pairs = [(r, report.get("E2", r["program"], r["side"] + ", lifted")) for r in report.all("E2") if not r["side"].endswith("lifted") and r["side"] != "xla"]
    for plain, lift in pairs:
        if "ms" in plain and lift and "ms" in lift:
            same = plain.get("compiled_kernels") == lift.get("compiled_kernels")
            lines.append(f"- {plain['program']}, {plain['side']}: {plain['ms'] / lift['ms']:.2f}x by lifting"
                         + (": the number of kernels is the same, because the rule rejects nothing here; the difference is noise." if same else "."))  # fmt: skip
    return lines + [""]


def unrolled(report):
    """E4, the factors"""
    found, lines = unroll_factors(report), []
    if not found:
        return []
    untouched = report.ms(RUNGS[0][1], "tokamak")
    head = "### E4: unrolling (paper: 3.5x at 10)"
    rows = []
    for (kind, factor), of in sorted(found.items()):
        cells = [number(of[s]["ms"]) if s in of and "ms" in of[s] else why(of.get(s)) for s in ("xla", "tokamak")]
        compiles = [number(of[s].get("compile_s"), 2) if s in of and "ms" in of[s] else "-" for s in ("xla", "tokamak")]
        rows.append([kind, factor, *cells, *compiles])
    lines += [head, "", f"Milliseconds for {STEPS:,} steps and seconds of compilation. The unmodified program on Tokamak: {number(untouched)} ms.", ""]
    lines += table(["program", "unroll", "XLA ms", "Tokamak ms", "XLA compiles, s", "Tokamak compiles, s"], rows)
    return lines


def crossing(report):
    """E5"""
    series = size_series(report)
    if not series:
        return []
    sizes = sorted({n for of in series.values() for n in of})
    lines = ["### E5: number of simulations from which a GPU is faster (paper: about 70)", "",
             f"The plain program, ms for {STEPS:,} steps, everything in the memory of its device.", ""]  # fmt: skip
    lines += table(["N", *(shown(name, report) for name in series)], [[f"{n:,}", *(number(of.get(n)) for of in series.values())] for n in sizes])
    for gpu, cpu in (("xla", "xla, CPU"), ("tokamak", "tokamak, CPU"), ("tokamak", "xla, CPU")):
        both = [n for n in sizes if n in series.get(gpu, {}) and n in series.get(cpu, {})]
        over = [n for n in both if series[gpu][n] < series[cpu][n]]
        if both:
            name = f"{shown(gpu, report)} against {shown(cpu, report)}"
            lines.append(f"- {name}: " + (f"the GPU is faster from N = {over[0]:,} on (of the sizes measured)." if over else "the CPU is faster at every size measured."))
    if not report.cuda:
        lines.append("- This machine has no GPU: the section of the GPU machine has the crossover. This table shows how both CPU backends scale.")
    lines += [f"- {shown(r['side'], report)}: {r['error']}" for r in report.all("E5") if "error" in r and r["side"] == "tokamak, CPU"]
    return lines + [""]


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
    return ["### E6: other systems (paper: PyTorch eager 0.13x, TorchScript 1.97x of XLA's baseline; handwritten CUDA 2.7x over XLA's best, 28x over its baseline)", "",
            *table([f"N = {report.n:,}", "ms", "over XLA's plain program", "over XLA's best row"], rows),
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
    return ["### E7: kernels, device time and memory, before and after", "",
            "Kernels per step, the fraction of the wall time in which the device works, and the bytes stored between kernels.", "", *table(["", "program", "kernels and copies per step", "of these, copies", "device busy", "temporary bytes"], rows), *hardware(report), *chosen_of_gpu(report)]  # fmt: skip


def hardware(report):
    """The counters that ncu read."""
    counted = report.data.get("hardware")
    if not counted:
        where = "were not read in this run; [counters.md](counters.md) has those of a step, before and after fusion." if report.cuda else "are not read on a CPU."
        return ["Hardware counters (ncu) " + where, ""]
    reasons = {side: of["why"] for side, of in counted.items() if "why" in of}
    rows = []
    for side, of in counted.items():
        for kernel, m in of.get("kernels", {}).items():
            rows.append([side, f"`{kernel}`", m["launches"], number(m.get("ns", 0) / 1e3), number(m.get("read")), number(m.get("written")), number(m.get("instructions")), number(m.get("warps"))])
    lines = [f"Hardware counters, {', '.join(reasons)}: {next(iter(reasons.values()))}.", ""] if reasons else []
    if rows:
        lines += ["Hardware counters (ncu) of the plain program, means over the launches that were read:", "",
                  *table(["", "kernel", "launches", "us", "bytes read from DRAM", "written", "warps' instructions", "warps active, %"], rows)]  # fmt: skip
    return lines


def chosen_of_gpu(report):
    """The kernels of `tokamak bench --counters`: compiled for an H200, whatever the machine."""
    counted = report.data.get("counters")
    if not counted:
        return []
    if "why" in counted:
        return [f"Registers and occupancy were not counted: {counted['why']}", ""]
    rows = []
    for way, title in (("rules", "before: the paper's rules"), ("search", "after: Tokamak")):
        of = counted.get(way, [])
        code = [k for k in of if "registers" in k]
        moved = sum(k["bytes"] * (k["runs"] or 1) for k in of)
        rows.append([title, number(sum(k["runs"] or 1 for k in of)), number(moved), ", ".join(str(k["registers"]) for k in code), number(sum(k["spilled_bytes"] for k in code)),
                     ", ".join(f"{100 * k['occupancy']:.0f} %" for k in code)])  # fmt: skip
    return ["`tokamak bench examples/cartpole.mlir --counters`: the same plain program, its kernels compiled for an H200.", "",
            *table(["", "launches and copies", "bytes moved", "registers per thread, each kernel", "bytes spilled", "occupancy, each kernel"], rows)]  # fmt: skip


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
    return ["### E8: the first call, a loop in Python, eager", "", f"Seconds of the first call of the plain program in a new process. Then ms for {STEPS:,} steps in lax.scan, as "
            "calls of one jitted step, and without jit (op by op, `jax.disable_jit`).", "",
            *table(["", "trace", "lower", "compile", "run", "first call", "scan", "one call per step", "eager"], rows)]  # fmt: skip


def one(report, suffix, plots):
    image = lambda name, alt: [f"![{alt}]({name}{suffix}.svg)", ""] if f"{name}{suffix}.svg" in plots else []  # noqa: E731
    return [f"## On {machine(report)}", "", *facts(report), *image("paper_ladder", "the ladder"), *(ladder(report) + kernel_ends(report) if has_ladder(report) else []), *lifted(report),
            *unrolled(report), *image("paper_unroll", "unrolling"), *crossing(report), *image("paper_sizes", "sizes"), *others(report), *counted(report), *first_calls(report),
            *paper_attention.sections(report, number, table)]  # fmt: skip


def write(out):
    read, plots = load(out), paper_plots.draw(out)
    if not read:
        print(f"{out} has no paper.json: bench/paper makes it")
        return 1
    lines = ["`bench/paper` measured this.", "", "# The paper's experiments, reproduced", "",
             "*Operator Fusion in XLA: Analysis and Evaluation* (arXiv 2301.13062) makes CartPole 10.5 times faster on XLA by rewriting it: random numbers precomputed, no "
             "concatenate, unrolled by 10. This page repeats each step on today's XLA and on Tokamak ([how Tokamak's `rules` follow the paper](../paper.md)).", "",
             "XLA, `rules` and Tokamak are measured alternately in one process. XLA with other flags runs in one process per set of flags, and a cell has the fastest of them. "
             "The programs are in `bench/workloads.py`. A missing row states the reason.", ""]  # fmt: skip
    for report, suffix in read:
        lines += one(report, suffix, plots)
        tried = report.data.get("flags", {})
        if tried:
            lines += ["Flags tried on XLA: " + "; ".join(f"{name} (`{flags}`{rejected(report, name)})" for name, flags in tried.items()) + ".", ""]
    for name, text in plots.items():
        (out / name).write_text(text)
    (out / "paper.md").write_text("\n".join(lines).rstrip() + "\n")
    print(f"{out}/paper.md")
    return 0


def rejected(report, name):
    of = [r for r in report.all("flags") if r.get("flags") == name]
    return "" if any("ms" in r for r in of) or not of else ": " + why(of[0])
