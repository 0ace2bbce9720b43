"""docs/results/cpu.md: the CPU backend against JAX's (bench/run_cpu.py)."""
import statistics

from .common import facts_line, machine, mean, table, yes

TITLE = "CPU backend against JAX's CPU backend"
INTRO = """Milliseconds per call: the best of several repetitions that alternate between both backends; in brackets
the median repetition relative to the best. Ratio: JAX's time / Tokamak's. Changed: the ratio with
inputs that change from call to call. Compile: milliseconds, the best of several, without a cache.
Difference: the largest of all results, relative to the number and its array."""

SIDES = ("tokamak", "cpu")
# Bars: ratios of time to JAX's.
MEAN_BAR, EACH_BAR, COMPILE_BAR = 2.5, 0.95, 0.5
BARS = {"transpose": 8.0, "dropout": 3.0, "layernorm_bwd": 3.0, "nbody": 3.0, "ew_chain_transc": 3.0, "sort": 6.0, "cumsum": 6.0,
        "maxpool": 2.0, "embedding_grad": 2.0, "attn_fwd": 3.0, "matmul_f32": 1.0, "matmul_bias_gelu": 1.2, "resnet_block_fwd": 1.0}  # fmt: skip


def ratio(row, key="seconds"):
    ours, theirs = row[key]["tokamak"], row[key]["cpu"]
    return min(theirs) / min(ours) if isinstance(ours, list) else theirs / ours


def allowed(row):
    """The largest difference that rounding of bf16 results or long sums explains."""
    narrow = "bf16" in row["workload"] or row["workload"].startswith(("attn", "masked", "matmul_b", "resnet", "transpose_bshd"))
    return 2e-2 if narrow else 1e-3


def off(row):
    """The distance of both sides from the f64 result."""
    return f" (Tokamak is {row['off']['tokamak']:.1e} from the f64 result, JAX {row['off']['cpu']:.1e})" if "off" in row else ""


def summary(rows):
    """Names of the bars and whether each is met."""
    done = [row for row in rows if "seconds" in row and not row["fallbacks"]]
    kinds = {}  # every workload counts once, whatever its number of sizes
    for row in done:
        kinds.setdefault(row["workload"], []).append(ratio(row))
    overall = mean(mean(of) for of in kinds.values())
    slow = [f"{row['workload']} {row['size']} {ratio(row):.2f}" for row in done if ratio(row) < EACH_BAR]
    lines = [(f"geometric mean over {len(done)} programs of {len(kinds)} workloads: {mean(map(ratio, done)):.2f} "
              f"(each workload once: {overall:.2f})", f">= {MEAN_BAR}", mean(map(ratio, done)) >= MEAN_BAR),
             ("slower than JAX: " + (", ".join(slow) or "none"), f"none under {EACH_BAR}", not slow)]  # fmt: skip
    for name, bar in BARS.items():
        if name in kinds:
            lines.append((f"{name}: {min(kinds[name]):.2f} to {max(kinds[name]):.2f}", f">= {bar}", min(kinds[name]) >= bar))
    compiled = mean(1 / ratio(row, "compile_s") for row in done)
    lines.append((f"compile time, geometric mean: {compiled:.2f} of JAX's", f"<= {COMPILE_BAR}", compiled <= COMPILE_BAR))
    wrong = [f"{row['workload']} {row['size']}{off(row)}" for row in done if row["difference"] > allowed(row)]
    lines.append(("results that differ: " + (", ".join(wrong) or "none"), "none", not wrong))
    return lines


def line(row):
    ms = {s: f"{min(t) * 1e3:.3f} ({statistics.median(t) / min(t):.2f})" for s, t in row["seconds"].items()}
    other = f"{ratio(row, 'seconds_changed'):.2f}" if "seconds_changed" in row else ""
    compiles = [f"{min(row['compile_s'][s]) * 1e3:.1f}" for s in SIDES]
    return (f"{row['workload']} {row['size']}", ms["tokamak"], ms["cpu"], f"{ratio(row):.2f}", other, row["launches"], *compiles,
            f"{row['difference']:.1e}")  # fmt: skip


def section(data):
    facts, rows = data["facts"], data["programs"]
    lines = [f"## {machine(facts)}", "", facts_line(facts), ""]
    lines += [*table("what | bar | met", ((text, bar, yes(met)) for text, bar, met in summary(rows))), ""]
    counted = sorted((row for row in rows if "seconds" in row and not row["fallbacks"]), key=ratio)
    lines += table("program | Tokamak | JAX | ratio | changed | launches | compile, Tokamak | JAX | difference", map(line, counted))
    others = [row for row in rows if "seconds" not in row or row["fallbacks"]]
    if others:
        lines += ["", "Not counted:", "", *table("program | reason", ((f"{row['workload']} {row['size']}", why(row)) for row in others))]
    return lines


def why(row):
    said = row.get("error") or row.get("skipped") or "interpreted: " + "; ".join(sorted(set(row.get("fallbacks", ["?"]))))[:200]
    return said.replace("|", "/")
