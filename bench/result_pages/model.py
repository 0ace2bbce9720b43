"""docs/results/model.md: the cost model against measurement (bench/model_error.py)."""
import hashlib
import math
import statistics

from .common import facts_line, machine, table

TITLE = "The cost model against measurement"
INTRO = """Predicted and measured time of kernels of the workloads. An error is |predicted / measured - 1|; tau is
Kendall's rank correlation of predicted and measured times. The rates of the machine file were fitted to
the kernels of one half of the workloads; the other half is the test set. On a GPU, calls of a library
and kernels on tensor cores are classes of their own: contractions, convolutions, and chains of
contractions such as attention."""
BARS = {"cpu": (0.20, 0.85), "gpu": (0.20, 0.85)}  # median error, tau


def kendall(xs, ys):
    """Kendall's tau-b."""
    n, agree, tie_x, tie_y = len(xs), 0, 0, 0
    for i in range(n):
        for j in range(i):
            a, b = (xs[i] > xs[j]) - (xs[i] < xs[j]), (ys[i] > ys[j]) - (ys[i] < ys[j])
            agree += a * b
            tie_x += a == 0
            tie_y += b == 0
    pairs = n * (n - 1) / 2
    return agree / math.sqrt((pairs - tie_x) * (pairs - tie_y)) if n > 1 else 1.0


def error(row):
    return abs(row["predicted_us"] / row["measured_us"] - 1)


def figures(rows):
    errors = sorted(error(row) for row in rows)
    return {
        "kernels": len(rows),
        "median_error": statistics.median(errors) if errors else 0,
        "p90_error": errors[int(0.9 * (len(errors) - 1))] if errors else 0,
        "tau": kendall([r["predicted_us"] for r in rows], [r["measured_us"] for r in rows]),
        "bias": math.exp(statistics.median(math.log(r["predicted_us"] / r["measured_us"]) for r in rows)) if rows else 1,
    }


def is_test(name, names, split=0):
    """Whether a workload is in the test half of `names`; `split`: selects another random split."""
    ordered = sorted(names, key=lambda name: hashlib.sha1(f"{split} {name}".encode()).hexdigest() if split else name)
    return ordered.index(name) % 2 == 1


def line(label, rows):
    f = figures(rows)
    return label, f["kernels"], f"{f['median_error']:.1%}", f"{f['p90_error']:.0%}", f"{f['tau']:.3f}", f"{f['bias']:.2f}"


def class_of(row):
    return row.get("class", row["generator"])


def special_classes(rows):
    """[(class, its rows)] of the classes that are no generators: library calls and kernels on tensor cores, of both halves."""
    names = sorted({class_of(r) for r in rows if class_of(r) != r["generator"]})
    return [(name, [r for r in rows if class_of(r) == name]) for name in names]


def worst_line(r):
    return f"{r['workload']} {r['size']}{' unfused' if r['unfused'] else ''}", r["kernel"], class_of(r), f"{r['measured_us']:.2f}", f"{r['predicted_us']:.2f}"


def section(data):
    facts, rows = data["facts"], data["kernels"]
    test, fitted = [r for r in rows if r["test"]], [r for r in rows if not r["test"]]
    bars = BARS["gpu" if facts.get("device") else "cpu"]
    parts = [("**test half**", test), ("fitted half", fitted)]
    parts += [(f"test: {name}", [r for r in test if class_of(r) == name]) for name in sorted(set(map(class_of, test)))]
    parts += [(f"both halves: {name}", some) for name, some in special_classes(rows)]
    for low, high in ((0, 3), (3, 30), (30, 300), (300, math.inf)):
        some = [r for r in test if low <= r["measured_us"] < high]
        parts += [(f"test: {low} us and more" if high == math.inf else f"test: {low} to {high} us", some)] if some else []
    worst = sorted(test, key=lambda r: -abs(math.log(r["predicted_us"] / r["measured_us"])))[:15]
    return [f"## {machine(facts)}", "", facts_line(facts),
            f"{len(rows)} kernels of {len({r['workload'] for r in rows})} workloads. Bars: median error {bars[0]:.0%}, tau {bars[1]}.", "",
            *table("kernels | number | median error | 90 % below | tau | predicted / measured, median", (line(*part) for part in parts)), "",
            "Largest errors of the test half:", "", *table("workload | kernel | class | measured us | predicted us", map(worst_line, worst))]  # fmt: skip
