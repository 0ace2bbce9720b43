"""Whether the rows of bench/run_tensor_cores.py reach their bars: each of them, and geometric means over some.

A result is a dict, as in tensor_cores.json. Where a row times both passes of attention, the time of the backward pass is its time minus that of
the row of the forward pass; both sides are treated alike.
"""
from typing import NamedTuple

from result_pages.common import mean

SECONDARY = ("backward_ms", "peer_backward_ms", "figure", "met")  # computed here from what was measured
CUDNN_ATTENTION = "cuDNN's attention"
CUDNN_FUSED = "cuDNN with its own fusion"


class Summary(NamedTuple):
    name: str  # as in Row.among
    title: str
    mean: float  # bars of the geometric mean and of the least; None: not checked
    least: float
    ratio: object  # of a result, or None
    measured: object = None  # whether a result could have a ratio, where that is not the same


def device_ratio(got, peer="peer"):
    """The peer's time over ours: on the device where calls are too short to tell, else of calls."""
    suffix = "_device_ms" if f"{peer}_device_ms" in got else "_ms"
    return got[f"{peer}{suffix}"] / got[suffix[1:]] if f"{peer}{suffix}" in got else None


def fused_ms(got):
    """The time of cuDNN's fastest engine with its own fusion: as PyTorch calls it, or XLA."""
    times = [got["cudnn_ms"]] if "cudnn_ms" in got else []
    times += [got["peer_ms"]] if got.get("peer_source") == CUDNN_FUSED else []
    return min(times, default=None)


def fused_ratio(got):
    return fused_ms(got) / got["ms"] if "ms" in got and fused_ms(got) else None


SUMMARIES = (
    Summary("shapes", "20 shapes of products, the best candidate over XLA, calls", 1.1, 0.97, lambda got: got["peer_ms"] / got["ms"] if "ms" in got else None),
    Summary("shapes", "the same, on the device", None, None, device_ratio),
    Summary("own", "12 large products that Tokamak's own kernel computes, over cuBLASLt", 0.92, None,
            lambda got: device_ratio(got, "library") if got.get("plan") == "own" and got.get("library", "").startswith("cuBLAS") else None,
            lambda got: "library_ms" in got),
    Summary("convolutions", "convolution, bias, residual and relu over cuDNN's own fusion", 0.95, 0.85, fused_ratio),
)  # fmt: skip


def derive(row, results):
    """Adds to the row's result what is computed from it and from others. `results`: by label."""
    got = results[row.label]
    for key in SECONDARY:
        got.pop(key, None)
    before = results.get(row.forward, {})
    if "ms" in got and "ms" in before:
        got |= {"backward_ms": got["ms"] - before["ms"], "peer_backward_ms": got["peer_ms"] - before["peer_ms"]}
    got["figure"] = figure(row, got, before)
    got["met"] = None
    if row.bar and got["figure"] is not None:
        got["met"] = got["figure"] <= row.bar[1] if row.bar[0].endswith(("ms", "_s")) else got["figure"] >= row.bar[1]


def figure(row, got, before):
    """The number to compare with the row's bar; None without a bar, or without a measurement."""
    if not row.bar or "error" in got:
        return None
    kind = row.bar[0]
    if kind in ("ms", "backward_ms", "compile_s"):
        return got.get(kind)
    if kind == "fused":
        return fused_ratio(got)
    if "ms" not in got:
        return None
    if kind == "ratio":
        return got["peer_ms"] / got["ms"]
    if any(g.get("peer_source") != CUDNN_ATTENTION for g in ([got] if kind == "cudnn" else [got, before])):
        return None
    if kind == "cudnn":
        return got["peer_ms"] / got["ms"]
    return got["peer_backward_ms"] / got["backward_ms"] if got.get("backward_ms", 0) > 0 else None


def summarize(rows, results):
    """[{title, mean, least, count, of, mean_bar, least_bar, met}]; `met`: None without bars, or while rows are missing."""
    made = []
    for one in SUMMARIES:
        among = [row for row in rows if one.name in row.among]
        got = [results[row.label] for row in among if row.label in results]
        ratios = [ratio for of in got if (ratio := one.ratio(of)) is not None]
        if not ratios:
            continue
        least = min(ratios)
        enough = mean(ratios) >= (one.mean or 0) and least >= (one.least or 0) and len(ratios) == len(among)
        checked = one.mean is not None and sum(map(one.measured, got) if one.measured else map(bool, ratios)) == len(among)
        made.append({"title": one.title, "mean": mean(ratios), "least": least, "count": len(ratios), "of": len(among), "mean_bar": one.mean,
                     "least_bar": one.least, "met": enough if checked else None})  # fmt: skip
    return made


def spoken(summary):
    """A line of text about a summary."""
    bars = [f"{what} {summary[f'{what}_bar']:g}" for what in ("mean", "least") if summary[f"{what}_bar"] is not None]
    met = {True: "met", False: "missed", None: "rows are missing" if bars else "not checked"}[summary["met"]]
    return (f"{summary['title']}: {summary['mean']:.3f} in the geometric mean of {summary['count']} of {summary['of']}, least {summary['least']:.3f}"
            f"{'; bars: ' + ', '.join(bars) if bars else ''}: {met}")  # fmt: skip
