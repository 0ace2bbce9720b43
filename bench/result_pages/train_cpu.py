"""docs/results/train_cpu.md: training steps on the CPU (bench/run_train.py)."""
from .common import facts_line, machine, table

TITLE = "Training steps on the CPU against JAX's CPU backend"
INTRO = """Loss, gradients and Adam in one call. Milliseconds per step: the best of several repetitions that
alternate between both backends; in brackets the median relative to the best. Ratio: JAX's time /
Tokamak's. Losses differ: the largest relative difference of the losses."""
BAR = 1.5  # JAX's time / Tokamak's


def line(row):
    def ms(side):
        return f"{side['best_ms']:.2f} ({side['median_ms'] / side['best_ms']:.2f})"

    ours, peer = row["tokamak"], row["cpu"]
    return row["program"], ms(ours), ms(peer), f"{row['ratio']:.2f}", BAR, f"{ours['compile_s']:.2f}", f"{peer['compile_s']:.2f}", f"{row['loss_difference']:.1e}"


def section(data):
    return [f"## {machine(data['facts'])}", "", facts_line(data["facts"]), "",
            *table("step | Tokamak | JAX | ratio | bar | compile s | JAX's | losses differ", map(line, data["rows"]))]  # fmt: skip
