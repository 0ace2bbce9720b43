"""docs/results/tensor_cores.md: contractions against XLA and PyTorch on one GPU (bench/run_tensor_cores.py)."""
from .common import facts_line, machine, mean, table

TITLE = "Contractions, attention, convolutions and models on one GPU"
INTRO = """Milliseconds per call: back-to-back calls with one wait at the end, the least of several turns that
alternate between Tokamak and XLA in one process; training steps feed their results back. Spread: the
median over the least, of Tokamak and of XLA. XLA runs the source that is fastest for it: `sdpa` is
cuDNN's attention there. PyTorch is measured after them in a process of its own; its fastest variant
counts. Difference: the largest of the first call's results, over 1 + |XLA's|. Bars are what the project
wants to reach on an H200: a time, or a multiple of XLA's speed."""
GROUPS = {"products": "Products", "attention": "Attention", "bert": "BERT-base", "gpt": "Decoders", "resnet": "ResNet-50", "loops": "Contractions in loops",
          "convolutions": "Convolution, bias, residual and relu of ResNet-50's layers, bf16", "compile": "Cold compilation"}  # fmt: skip


def number(value):
    return "-" if value is None else f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def bar(row):
    if not row["bar"]:
        return "-"
    name, value = row["bar"]
    text = {"ratio": f"{value:g} x XLA", "ms": f"{value:g} ms", "compile_s": f"{value:g} s"}[name]
    return text + {True: ", met", False: ", **missed**", None: ""}[row.get("met")]


def spread(row):
    return f"{row['spread']:.2f} / {row['peer_spread']:.2f}" if "spread" in row else "-"


def line(row):
    name = f"`{row['label'].split('/', 1)[1].rstrip(':')}`"
    if "error" in row:
        return (name, row["error"].split("\n")[0].replace("|", "/")[:80], *["-"] * 8, bar(row))
    torch = number(row["torch_ms"]) if "torch_ms" in row else "-"
    if "ms" not in row:
        return (name, "-", "-", "-", torch, *["-"] * 5, bar(row))
    over = f"{row['torch_ms'] / row['ms']:.2f}" if "torch_ms" in row else "-"
    return (name, number(row["ms"]), number(row["peer_ms"]), f"{row['peer_ms'] / row['ms']:.2f}", torch, over, spread(row), number(row.get("tflops")),
            f"{row['compile_s']:.2f} / {row['peer_compile_s']:.2f}", f"{row['difference']:.1e}", bar(row))  # fmt: skip


def section(data):
    facts, rows = data["facts"], data["rows"]
    days = sorted({row["when"] for row in rows})
    bars = [row for row in rows if row.get("met") is not None]
    lines = [f"## {machine(facts)}{', tiny sizes' if facts.get('tiny') else ''}", "", facts_line(facts), "",
             f"Rows measured {days[0]} to {days[-1]} UTC. {sum(row['met'] for row in bars)} of {len(bars)} bars are met.", ""]  # fmt: skip
    for group, title in GROUPS.items():
        of = [row for row in rows if row["label"].split("/")[0] == group]
        if not of:
            continue
        lines += [f"### {title}", ""]
        if group == "compile":
            lines += [*table("program | Tokamak s | XLA s | bar", ((f"`{r['label'].split('/', 1)[1]}`", *(number(r.get(k)) for k in ("compile_s", "peer_compile_s")), bar(r)) for r in of)), ""]
            continue
        timed = [row["peer_ms"] / row["ms"] for row in of if "ms" in row]
        if timed:
            lines += [f"XLA's time / Tokamak's: {mean(timed):.2f} in the geometric mean of {len(timed)}, {min(timed):.2f} at least.", ""]
        lines += [*table("program | ms | XLA ms | XLA / Tokamak | torch ms | torch / Tokamak | spread, XLA's | TFLOP/s | compile s, XLA's | difference | bar", map(line, of)), ""]
    lines += [f"- `{row['label']}`: XLA runs {row['peer_source']}." for row in rows if "fails" in (row.get("peer_source") or "")]
    variants = sorted({row["torch"] for row in rows if "torch" in row})
    return lines + ([f"PyTorch's fastest variants: {', '.join(variants)}."] if variants else lines[:0])
