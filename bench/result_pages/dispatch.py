"""docs/results/dispatch.md: the cost of a call from JAX (bench/run_dispatch.py)."""
import statistics

from .common import facts_line, machine, table, yes

TITLE = "Cost of a call from JAX against JAX's CPU backend"
INTRO = """Microseconds per call: medians over runs of `bench/peers/dispatch.py` that alternate between both
backends; in brackets the smallest and the largest. Ratio: Tokamak's time / JAX's."""
# Variant -> the allowed multiple of JAX's own time. Others are measured without a bar.
BARS = {
    "jit_1arg_async": 1.3, "jit_1arg_sync": 1.3, "jit_16args_16outs_async": 1.1, "jit_16args_16outs_sync": 1.1,
    "jit_pytree200_async": 1.1, "jit_pytree200_sync": 1.1, "device_put_tiny_async": 1.2, "device_put_tiny_sync": 1.2,
    "jit_numpy_arg_async": 1.2, "jit_numpy_arg_sync": 1.2,
}  # fmt: skip


def missed(times):
    return [v for v, bar in BARS.items() if v in times and statistics.median(times[v]["tokamak"]) > bar * statistics.median(times[v]["cpu"])]


def line(variant, of, late):
    ours, theirs = statistics.median(of["tokamak"]), statistics.median(of["cpu"])
    cells = [f"{statistics.median(of[side]):.2f} ({min(of[side]):.1f} to {max(of[side]):.1f})" for side in ("tokamak", "cpu")]
    return variant, *cells, f"{ours / theirs:.2f}", BARS.get(variant, ""), yes(variant not in late) if variant in BARS else ""


def section(data):
    own, late = data["own"], missed(data["us"])
    grown = (own["after"] - own["before"]) / 1024
    return [f"## {machine(data['facts'])}", "", facts_line(data["facts"]), f"{data['facts']['runs']} runs on each backend.", "",
            *table("call | Tokamak | JAX | ratio | bar | met", (line(variant, of, late) for variant, of in data["us"].items())), "",
            f"Two programs of {own['whole_s'] / 2:.1f} s, where the second uses the result of the first, were launched in "
            f"{own['launch_ms']:.2f} ms (bar: 5 ms each). 100,000 calls changed the resident memory by {grown:+.0f} KiB "
            f"of {own['before'] / 1024:.0f} KiB."]  # fmt: skip
