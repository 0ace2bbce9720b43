#!/usr/bin/env python3
"""Measures the choice of schedules by modeled cost: the schedules that generators prefer against those of the lowest modeled cost.

    bench/schedules.py                      70 programs of one kernel each, of random shapes, on the CPU
    bench/schedules.py --device cuda        the same on the machine's GPU; writes schedules_cuda.json
    bench/schedules.py --against default    the schedules that the planner chooses with its margin
    bench/schedules.py --seed 7 --count 200

Writes schedules.json (--name: another one) and the page schedules.md in docs/results. One row per program whose schedule differs: the
measured time with the schedule of the lowest modeled cost (`--schedule=cheapest`) over that with the preferred one. Both are measured
by `tokamak explain --measure` in turn, several times; the best times count. Below 1: choosing by cost is faster. The table of margins
says what a choice would gain that replaces the preferred schedule only if another one saves more than the margin.
Programs: dots, row and column reductions, softmax, elementwise chains and transposes, drawn from the seed."""
import argparse
import datetime
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import write_pages
from result_pages import common
from result_pages.schedules import shown

ROOT = Path(__file__).resolve().parent.parent
SUM = "add { p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = f32[] add(p, q) }\n"
MAX = "max { p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = f32[] maximum(p, q) }\n"


def size(rng, least, most):
    """A size, log-uniform; half of them are multiples of 32."""
    value = round(least * (most / least) ** rng.random())
    return max(32, value // 32 * 32) if rng.random() < 0.5 else value


def dot(rng):
    m, n, k = (size(rng, 8, 1500) for _ in range(3))
    left = rng.random() < 0.7
    a, at = (f"f32[{m},{k}]", 1) if left else (f"f32[{k},{m}]", 0)
    return f"""ENTRY main {{
  a = {a} parameter(0)
  b = f32[{k},{n}] parameter(1)
  c = f32[{n}] parameter(2)
  d = f32[{m},{n}] dot(a, b), lhs_contracting_dims={{{at}}}, rhs_contracting_dims={{0}}
  cs = f32[{m},{n}] broadcast(c), dimensions={{1}}
  e = f32[{m},{n}] add(d, cs)
  ROOT f = f32[{m},{n}] tanh(e)
}}"""


def batched_dot(rng):
    b, m, n, k = size(rng, 2, 100), size(rng, 8, 300), size(rng, 8, 300), size(rng, 8, 128)
    return f"""ENTRY main {{
  a = f32[{b},{m},{k}] parameter(0)
  b = f32[{b},{n},{k}] parameter(1)
  d = f32[{b},{m},{n}] dot(a, b), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}
  ROOT f = f32[{b},{m},{n}] negate(d)
}}"""


def softmax(rng):
    m, n = size(rng, 8, 8000), size(rng, 8, 8000)
    return f"""{MAX}{SUM}ENTRY main {{
  x = f32[{m},{n}] parameter(0)
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  t = f32[{m}] reduce(x, low), dimensions={{1}}, to_apply=max
  ts = f32[{m},{n}] broadcast(t), dimensions={{0}}
  d = f32[{m},{n}] subtract(x, ts)
  e = f32[{m},{n}] exponential(d)
  s = f32[{m}] reduce(e, zero), dimensions={{1}}, to_apply=add
  ss = f32[{m},{n}] broadcast(s), dimensions={{0}}
  ROOT y = f32[{m},{n}] divide(e, ss)
}}"""


def row_sums(rng):
    m, n = size(rng, 8, 8000), size(rng, 8, 20000)
    return f"""{SUM}ENTRY main {{
  x = f32[{m},{n}] parameter(0)
  y = f32[{m},{n}] parameter(1)
  zero = f32[] constant(0)
  p = f32[{m},{n}] multiply(x, y)
  ROOT s = f32[{m}] reduce(p, zero), dimensions={{1}}, to_apply=add
}}"""


def column_sums(rng):
    m, n = size(rng, 8, 20000), size(rng, 8, 8000)
    return f"""{SUM}ENTRY main {{
  x = f32[{m},{n}] parameter(0)
  zero = f32[] constant(0)
  p = f32[{m},{n}] tanh(x)
  ROOT s = f32[{n}] reduce(p, zero), dimensions={{0}}, to_apply=add
}}"""


def chain(rng):
    m, n = size(rng, 8, 5000), size(rng, 8, 5000)
    return f"""ENTRY main {{
  x = f32[{m},{n}] parameter(0)
  y = f32[{n}] parameter(1)
  ys = f32[{m},{n}] broadcast(y), dimensions={{1}}
  p = f32[{m},{n}] multiply(x, ys)
  q = f32[{m},{n}] {rng.choice(["logistic", "exponential", "abs"])}(p)
  ROOT s = f32[{m},{n}] add(q, x)
}}"""


def transposed(rng):
    m, n = size(rng, 8, 5000), size(rng, 8, 5000)
    return f"""ENTRY main {{
  x = f32[{m},{n}] parameter(0)
  y = f32[{n},{m}] parameter(1)
  t = f32[{n},{m}] transpose(x), dimensions={{1,0}}
  ROOT s = f32[{n},{m}] add(t, y)
}}"""


KINDS = (dot, batched_dot, softmax, row_sums, column_sums, chain, transposed)


def measure(arguments, path, schedule):
    """The kernels of each program, measured."""
    command = [str(arguments.tokamak), "explain", str(path), "--json", "--no-compare", "--measure", "--seconds", str(arguments.seconds)]
    if arguments.device:
        command += ["--target", "h200", "--device", arguments.device]
    if schedule != "default":
        command += ["--schedule", schedule]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    return [json.loads(line)["kernels"] for line in done.stdout.splitlines() if line.startswith("{")]


def row(kind, text, sides):
    """What was measured of a program; `sides`: for both choices, its kernels in each repetition."""
    us = [[sum(kernel["measured_us"] for kernel in kernels) for kernels in side] for side in sides]
    shapes = [line.split()[2] for line in text.splitlines() if line.startswith("  ") and "parameter(" in line]
    return {"kind": kind, "shapes": " ".join(shapes), "generators": sorted({kernel["generator"] for kernel in sides[0][0]}),
            "measured_us": [min(times) for times in us], "spread": max(max(times) / min(times) for times in us),
            "predicted_us": [sum(kernel["predicted_us"] for kernel in side[0]) for side in sides],
            "schedules": ["; ".join(kernel.get("schedule", "") for kernel in side[0]) for side in sides]}  # fmt: skip


def cpu_name():
    names = [line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return names[0] if names else platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokamak", type=Path, default=ROOT / "build/bin/tokamak")
    parser.add_argument("--device", default="", help="cuda: the machine's GPU")
    parser.add_argument("--against", default="cheapest", choices=("cheapest", "default"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=70)
    parser.add_argument("--seconds", type=float, default=0.02, help="measurement time per kernel")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--name", default="", help="of the data file")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    drawn = [(KINDS[i % len(KINDS)].__name__, KINDS[i % len(KINDS)](rng)) for i in range(arguments.count)]
    sides = [[], []]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "programs.hlo"
        path.write_text("\n// -----\n".join(f"HloModule p{i}\n{text}" for i, (_, text) in enumerate(drawn)))
        for _ in range(arguments.repetitions):
            for side, schedule in zip(sides, ("preferred", arguments.against)):
                side.append(measure(arguments, path, schedule))
    rows = [row(kind, text, [[run[i] for run in side] for side in sides]) for i, (kind, text) in enumerate(drawn)]
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    facts = {"command": common.command("bench/schedules.py"), "date": datetime.date.today().isoformat(), "commit": commit.stdout.strip(),
             "against": arguments.against, "load": os.getloadavg()[0]}  # fmt: skip
    facts |= {"device": "NVIDIA H200"} if arguments.device else {"cpu": cpu_name(), "cores": os.cpu_count()}
    name = arguments.name or ("schedules_cuda" if arguments.device else "schedules")
    data = {"facts": facts, "programs": rows}
    print("\n".join(shown(data)))
    common.save(arguments.out, name, data)
    write_pages.write("schedules", arguments.out, name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
