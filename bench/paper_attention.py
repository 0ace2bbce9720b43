"""Dropout and attention in BERT, E9 to E12 of bench/paper: the paper's analysis of a BERT training step, on today's XLA, torch.compile and Tokamak.

E9   a training step without and with dropout
E10  kernels per layer, and per attention, forward and with gradients
E11  where the difference goes: attention that is one kernel (no dropout), written out, with given masks, with drawn ones
E12  whether the mask, and the scores QK^T that it masks, are one kernel

Measures what bench/paper asks for; `sections` makes its part of the page.
"""
import json
import subprocess
import sys

EXPERIMENTS = ("E9", "E10", "E11", "E12")
SIDES = (("xla", "XLA"), ("torch", "torch.compile"), ("tokamak", "Tokamak"))
# E11: each line adds one thing to the line before
STEPS = [("do0_sdpa", "no dropout, fused attention (jax.nn.dot_product_attention; XLA: cuDNN's kernel)", "-"),
         ("do0", "no dropout, attention written out", "the fused attention that is lost"), ("mask10", "dropout with masks that are given as arrays", "applying masks"),
         ("do10", "dropout with masks drawn by threefry", "drawing random numbers")]  # fmt: skip
ATTENTION = [("attn_fwd", "attention"), ("attn_bwd", "attention and its gradients"), ("attn_do_fwd", "with dropout"), ("attn_do_bwd", "with dropout, and its gradients")]
SHALLOW, DEEP = 1, 3  # layers of the two programs whose difference is the kernels of a layer
TORCH_LIMIT_S = 240


def model(options):
    """(the prefix of the programs, their size): BERT-base on a GPU, a tiny one on a CPU."""
    return ("bert_train", "b2_s128" if options.quick else "b16_s512") if options.device == "cuda" else ("bert_tiny_train", "b2_s32")


def attention_size(options):
    return "b16_s512" if options.device == "cuda" and not options.quick else "b1_s64"


def dropout_steps(bench):
    """E9 and E11: one process, sides interleaved."""
    chosen = set(bench.options.chosen)
    name, size = model(bench.options)
    sides = [bench.side("xla"), bench.side("tokamak")]
    programs = [f"{name}_{kind}:{size}" for kind, _, _ in STEPS if "E11" in chosen or kind in ("do0", "do10")]
    bench.child("E11" if "E11" in chosen else "E9", programs, sides)
    if "E9" in chosen:
        bench.child("E9", [f"{name}_do10_rbg:{size}"], sides)


def kernels_of_layers(bench):
    """E10"""
    name, size = model(bench.options)
    sides = [bench.side("xla"), bench.side("tokamak")]
    bench.child("E10", [f"{name}_{kind}:{size}_l{layers}" for kind in ("do0", "do10") for layers in (SHALLOW, DEEP)], sides)
    bench.child("E10", [f"{name}:{attention_size(bench.options)}" for name, _ in ATTENTION], sides)


def masked_scores(bench):
    """E12"""
    sides = [bench.side("xla"), bench.side("rules", {"tokamak_fusion": "rules"}), bench.side("tokamak")]
    bench.child("E12", ["masked_scores:" + ("b16_h12_s512_d64" if bench.options.device == "cuda" else "b2_h2_s64_d32")], sides)


def in_torch(bench):
    """torch.compile's times and kernels of E9 and E10."""
    name, size = model(bench.options)
    name = name.replace("_tiny", "")
    labels = [f"bert/{name}_{kind}:{size}" for kind in ("do0", "do10")]
    labels += [f"bert/{name}_{kind}:{size}_l{layers}" for kind in ("do0", "do10") for layers in (SHALLOW, DEEP)]
    labels += [f"attention/{one}:{attention_size(bench.options)}" for one, _ in ATTENTION]
    if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode:
        bench.facts["torch_attention"] = {"why": "this Python has no torch"}
        return
    limit = 100 if bench.options.quick else TORCH_LIMIT_S
    bench.say(f"E9, E10: PyTorch, {limit} s at most")
    script = bench.options.peers / "torch_models.py"
    command = [sys.executable, str(script), "--kernels", "--seconds", str(limit * 0.8), *["--tiny"] * (bench.options.device == "cpu"), *labels]
    try:
        text = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=limit).stdout
    except subprocess.TimeoutExpired as error:
        text = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    bench.facts["torch_attention"] = {"rows": [r for r in rows if "ms" in r]}
    for row in rows:
        bench.say(f"PyTorch {row['label']}: " + (f"{row['ms']:.3f} ms" if "ms" in row else row["error"]))


PARTS = [(dropout_steps, {"E9", "E11"}), (kernels_of_layers, {"E10"}), (masked_scores, {"E12"}), (in_torch, {"E9", "E10"})]


# ---- the page


def record(report, kind, side, suffix=""):
    """The record of a training step, or of the program `kind` if it is one."""
    for one in report.all(*EXPERIMENTS):
        program, size = one["program"].split(":")
        named = program in (f"bert_train_{kind}", f"bert_tiny_train_{kind}", kind)
        if named and one["side"] == side and size.endswith(suffix) and (suffix or "_l" not in size):
            return one
    return {}


def torch_row(report, kind, suffix=""):
    for row in report.data.get("torch_attention", {}).get("rows", []):
        program, size = row["label"].split("/")[1].split(":")
        if program in (f"bert_train_{kind}", kind) and size.endswith(suffix) and (suffix or "_l" not in size):
            return row
    return {}


def ms(report, kind, side):
    return (torch_row(report, kind) if side == "torch" else record(report, kind, side)).get("ms")


def launched(report, kind, side, suffix=""):
    """Kernels and copies per call, or None."""
    if side == "torch":
        return torch_row(report, kind, suffix).get("kernels")
    one = record(report, kind, side, suffix)
    if "device_kernels" in one:  # per 1,000th of a call: the worker counts steps of CartPole
        return round((one["device_kernels"] + one["device_copies"]) * one["steps"])
    inside = one.get("instructions")
    return one.get("launches", sum(inside) if inside else None)


def sections(report, number, table):
    """The part of the page; `number` and `table`: of paper_page."""
    rows = [one for one in report.all(*EXPERIMENTS) if "ms" in one]
    if not rows:
        return []
    size = next((one["program"].split(":")[1] for one in rows if one["program"].startswith("bert")), None)
    lines = ["### E9 to E12: dropout and attention in a BERT training step", "",
             "The paper traces BERT's time to attention that XLA does not fuse and to dropout's random numbers. "
             + (f"BERT{'-base' if report.cuda else ', tiny'}, {size}, bf16, with Adam; ms per step." if size else ""), ""]  # fmt: skip
    titles = [title for _, title in SIDES]
    steps = [(kind, text) for kind, text in (("do0", "without dropout"), ("do10", "dropout 0.1, threefry"), ("do10_rbg", "dropout 0.1, rbg"))]
    body = [[text, *(number(ms(report, kind, side)) for side, _ in SIDES)] for kind, text in steps]
    ratio = [over(ms(report, "do10", side), ms(report, "do0", side)) for side, _ in SIDES]
    if any(cell != "-" for row in body for cell in row[1:]):
        lines += ["**E9: a step without and with dropout**", "", *table(["", *titles], [*body, ["with / without dropout", *ratio]])]
    return lines + layers(report, number, table, titles) + differences(report, number, table) + masks(report, table)


def over(x, y):
    return f"{x / y:.2f}x" if x and y else "-"


def layers(report, number, table, titles):
    """E10"""
    body = []
    for kind, text in (("do0", "a layer, without dropout"), ("do10", "a layer, with dropout")):
        cells = []
        for side, _ in SIDES:
            deep, shallow = (launched(report, kind, side, f"_l{n}") for n in (DEEP, SHALLOW))
            cells.append("-" if deep is None or shallow is None else number((deep - shallow) / (DEEP - SHALLOW)))
        body.append([text + ", forward, backward and Adam", *cells])
    for kind, text in ATTENTION:
        cells = [(launched(report, kind, side), ms(report, kind, side)) for side, _ in SIDES]
        body.append([text, *("-" if count is None else f"{number(count)} ({number(time)} ms)" for count, time in cells)])
    if all(cell == "-" for row in body for cell in row[1:]):
        return []
    how = "seen by the profiler" if report.cuda else "XLA's: instructions of its compiled text; Tokamak's: launches of its plan"
    return [f"**E10: kernels and copies** ({how}); of a layer: the difference of programs with {DEEP} and {SHALLOW} layers, over {DEEP - SHALLOW}.", "",
            *table(["", *titles], body)]  # fmt: skip


def differences(report, number, table):
    """E11"""
    sides = [SIDES[0], SIDES[2]]
    if not report.all("E11"):
        return []
    body = []
    for at, (kind, text, adds) in enumerate(STEPS):
        row = [text]
        for side, _ in sides:
            now, before = ms(report, kind, side), ms(report, STEPS[at - 1][0], side) if at else None
            row += [number(now), f"{now - before:+.3g} ms" if now and before else "-"]
        body.append([*row, adds])
    return ["**E11: where the difference goes.** Each line adds one thing to the line before.", "",
            *table(["", *(cell for _, title in sides for cell in (title, "difference")), "what the difference is"], body)]  # fmt: skip


def masks(report, table):
    """E12"""
    found = [one for one in report.all("E12") if "masked_together" in one]
    if not found:
        return []
    names = {"xla": "XLA", "rules": "Tokamak `rules`", "tokamak": "Tokamak"}
    body = [[names.get(one["side"], one["side"]), "yes" if one["masked_together"] else "no", f"{one['ms']:.3g}" if "ms" in one else "-",
             launched_text(one)] for one in found]  # fmt: skip
    return ["**E12: are the scores QK^T and their mask one kernel?** Scores, mask and softmax, written out in bf16.", "",
            *table(["", "one kernel", "ms", "kernels and copies"], body)]  # fmt: skip


def launched_text(one):
    inside = one.get("instructions")
    count = one.get("launches", sum(inside) if inside else None)
    return "-" if count is None else str(count)
