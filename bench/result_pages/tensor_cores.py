"""docs/results/tensor_cores.md: contractions against XLA and PyTorch on one GPU (bench/run_tensor_cores.py)."""
from .common import facts_line, machine, mean, table
from .tensor_core_notes import NOTES

TITLE = "Contractions, attention, convolutions and models on one GPU"
INTRO = """Milliseconds per call: back-to-back calls with one wait at the end, the least of several turns that
alternate between Tokamak and XLA in one process; training steps feed their results back. Spread: the
median over the least, of Tokamak and of XLA. XLA runs the source that is fastest for it: `sdpa` is
cuDNN's attention there. PyTorch is measured after them in a process of its own; its fastest variant
counts. Difference: the largest of the first call's results, over 1 + |XLA's|. Bars are what the project
wants to reach on an H200: a time, or a multiple of another's speed."""
GROUPS = {"products": "Products", "attention": "Attention", "bert": "BERT-base", "gpt": "Decoders", "resnet": "ResNet-50", "loops": "Contractions in loops",
          "convolutions": "Convolution, bias, residual and relu of ResNet-50's layers, bf16", "compile": "Cold compilation"}  # fmt: skip
BARS = {"ratio": "{:g} x XLA", "ms": "{:g} ms", "backward_ms": "backward {:g} ms", "cudnn": "{:g} x cuDNN", "cudnn_backward": "backward {:g} x cuDNN",
        "fused": "{:g} x cuDNN fused", "compile_s": "{:g} s"}  # fmt: skip
SAME = 0.01  # times this close are equal
TEXT = {
    "products": "Products of less than 60 us are also measured several in one program: the time on the device is the\nprogram's over their number. "
    "cuBLASLt: XLA with its own kernels switched off, in the same process.",
    "attention": "Rows that end in `_bwd` time the forward and the backward pass in one program. `backward`: their time\nminus that of the row above them, "
    "for both sides alike; bars of backward passes are compared with it.",
    "convolutions": "Eight convolutions with inputs of their own are one program (for PyTorch a CUDA graph), and its time is\ndivided by eight: "
    "one takes longer to dispatch than to compute. cuDNN fused: its fastest\nengine that computes bias, residual and relu, as PyTorch\n"
    "(`cudnn_convolution_relu`, `cudnn_convolution_add_relu`, benchmarked) or XLA calls it.",
}  # fmt: skip


def number(value):
    return "-" if value is None else f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def verdict(met):
    return {True: ", met", False: ", **missed**", None: ""}[met]


def bar(row):
    if not row["bar"]:
        return "-"
    kind, value = row["bar"]
    reached = f" ({number(row['figure'])})" if row.get("figure") is not None and kind not in ("ms", "compile_s") else ""
    return BARS[kind].format(value) + reached + verdict(row.get("met"))


def spread(row):
    return f"{row['spread']:.2f} / {row['peer_spread']:.2f}" if "spread" in row else "-"


def over(row, ours, theirs):
    return f"{row[theirs] / row[ours]:.2f}" if ours in row and theirs in row and row[ours] > 0 else "-"


def cudnn_fused(row):
    """As tensor_core_bars.fused_ms: the row's figure is that time over ours."""
    return number(row["figure"] * row["ms"]) if row.get("figure") else "-"


def product_columns(row):
    library = f"{number(row['library_ms'])} {row['library']}" if "library_ms" in row else "-"
    peers = "library_device_ms" if "library_device_ms" in row else "library_ms"
    return (number(row.get("device_ms")), number(row.get("peer_device_ms")), over(row, "device_ms", "peer_device_ms"), row.get("plan", "-"), library,
            over(row, "device_ms" if peers == "library_device_ms" else "ms", peers))  # fmt: skip


# group: the columns that it has beside the others, and their cells
MORE = {
    "products": ("on the device | XLA's | XLA / Tokamak | plan | cuBLASLt ms | cuBLASLt / Tokamak", product_columns),
    "attention": ("backward | XLA's | XLA / Tokamak",
                  lambda row: (number(row.get("backward_ms")), number(row.get("peer_backward_ms")), over(row, "backward_ms", "peer_backward_ms"))),
    "convolutions": ("plan | XLA calls | cuDNN fused ms | cuDNN fused / Tokamak",
                     lambda row: (row.get("plan", "-"), row.get("peer_source") or "-", cudnn_fused(row), number(row.get("figure")))),
}  # fmt: skip


def line(row):
    group, rest = row["label"].split("/", 1)
    name = f"`{rest.rstrip(':')}`"
    more = MORE[group][1](row) if group in MORE else ()
    if "error" in row:
        return (name, row["error"].split("\n")[0].replace("|", "/")[:80], *["-"] * (8 + len(more)), bar(row))
    torch = number(row["torch_ms"]) if "torch_ms" in row else "-"
    if "ms" not in row:
        return (name, "-", "-", "-", torch, *["-"] * (5 + len(more)), bar(row))
    return (name, number(row["ms"]), number(row["peer_ms"]), over(row, "ms", "peer_ms"), torch, over(row, "ms", "torch_ms"), *more, spread(row), number(row.get("tflops")),
            f"{row['compile_s']:.2f} / {row['peer_compile_s']:.2f}", f"{row['difference']:.1e}", bar(row))  # fmt: skip


def summary_line(s):
    bars = ", ".join(f"{what} {s[f'{what}_bar']:g}" for what in ("mean", "least") if s[f"{what}_bar"] is not None)
    verdict_of = {True: "met", False: "**missed**", None: "rows are missing"}[s["met"]] if bars else "-"
    return s["title"], f"{s['count']} of {s['of']}", f"{s['mean']:.3f}", f"{s['least']:.3f}", bars or "-", verdict_of


def group_section(group, title, rows):
    lines = [f"### {title}", "", *([TEXT[group], ""] if group in TEXT else [])]
    if group == "compile":
        cells = ((f"`{r['label'].split('/', 1)[1]}`", *(number(r.get(k)) for k in ("compile_s", "peer_compile_s")), bar(r)) for r in rows)
        return [*lines, *table("program | Tokamak s | XLA s | bar", cells), ""]
    timed = [row["peer_ms"] / row["ms"] for row in rows if "ms" in row]
    if timed:
        lines += [f"XLA's time / Tokamak's: {mean(timed):.2f} in the geometric mean of {len(timed)}, {min(timed):.2f} at least.", ""]
    more = f"{MORE[group][0]} | " if group in MORE else ""
    head = f"program | ms | XLA ms | XLA / Tokamak | torch ms | torch / Tokamak | {more}spread, XLA's | TFLOP/s | compile s, XLA's | difference | bar"
    lines += [*table(head, map(line, rows)), ""]
    return lines + [f"The plan of `{row['label'].split('/', 1)[1]}` has {row['kernels']} kernels; of these, {row['library_calls']} are calls of a library.\n"
                    for row in rows if "kernels" in row]  # fmt: skip


def behind(rows):
    """What is slower than XLA or misses its bar, and what bounds it."""
    cells = []
    for row in rows:
        slower = "ms" in row and row["peer_ms"] < row["ms"] * (1 - SAME)
        if slower or row.get("met") is False:
            cells.append((f"`{row['label'].rstrip(':')}`", over(row, "ms", "peer_ms"), bar(row), NOTES.get(row["label"].rstrip(":"), "-")))
    return [f"### More than {SAME:.0%} slower than XLA, or below the bar", "", *table("program | XLA / Tokamak | bar | what bounds it", cells), ""] if cells else []


def section(data):
    facts, rows = data["facts"], data["rows"]
    days = sorted({row["when"] for row in rows}) or ["-"]
    bars = [row for row in [*rows, *data["summaries"]] if row.get("met") is not None]
    lines = [f"## {machine(facts)}{', tiny sizes' if facts.get('tiny') else ''}", "", facts_line(facts), "",
             f"Rows measured {days[0]} to {days[-1]} UTC. {sum(row['met'] for row in bars)} of {len(bars)} bars are met.", "",
             *table("geometric means of time over Tokamak's | rows | mean | least | bars | ", map(summary_line, data["summaries"])), "",
             *behind(rows)]  # fmt: skip
    for group, title in GROUPS.items():
        if of := [row for row in rows if row["label"].split("/")[0] == group]:
            lines += group_section(group, title, of)
    lines += [f"- `{row['label']}`: XLA runs {row['peer_source']}." for row in rows if "fails" in (row.get("peer_source") or "")]
    variants = sorted({row["torch"] for row in rows if "torch" in row})
    return lines + ([f"PyTorch's fastest variants: {', '.join(variants)}."] if variants else lines[:0])
