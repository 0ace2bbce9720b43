#!/usr/bin/env python3
"""Measures the readers, the verifier and the interpreter, and compares them with their targets.

    cmake --build build --target foundation && bench/run_foundation.py

Writes foundation.json and the page foundation.md in docs/results. Every figure is CPU time of a separate process, bound to one
core; repetitions iterate over all cases, so that interference affects all equally. The best of all repetitions is
compared with the target; the median is also given.
"""
import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import write_pages
from result_pages import common
from result_pages.foundation import CONSTANT_MB, ELEMENTS

ROOT = Path(__file__).resolve().parent.parent


class Foundation:
    def __init__(self, program, core):
        self.program, self.core = program, core

    def __call__(self, *args):
        run = subprocess.run(
            [self.program, *map(str, args)],
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda: os.sched_setaffinity(0, {self.core}),
        )
        if run.returncode != 0:
            sys.exit(f"foundation {' '.join(map(str, args))}: {run.stderr.strip()}")
        return json.loads(run.stdout)


def largest(corpus, pattern, count):
    """Files of a corpus whose folder may have a hash in its name."""
    files = sorted(corpus.glob(pattern), key=lambda p: -p.stat().st_size)[:count]
    return files or sys.exit(f"there is no {pattern} below {corpus}: run tools/corpus.py, which unpacks the corpora")


def make_programs(foundation, corpus, folder):
    """Every program to read: name, path and kind."""
    cases = []
    parse = largest(corpus, "xla_hlo*/dev/parse/*.hlo", 3)
    cases += [(p.name, p, "hlo") for p in parse]
    converted = folder / "as_stablehlo.mlir"
    foundation("convert", "stablehlo", parse[0], converted)
    cases.append((f"{parse[0].name}, as StableHLO", converted, "stablehlo"))
    cases += [(f"{p.parent.name} (JAX)", p, "stablehlo") for p in largest(corpus, "jax*/dev/*/stablehlo.mlir", 2)]
    cases += [(p.name, p, "stablehlo") for p in largest(corpus, "stablehlo*/dev/testdata/*.mlir", 2)]
    made = {
        "ops100k": ["--instructions", "70000"],
        "ops200k": ["--instructions", "140000"],
        "locations100k": ["--instructions", "70000", "--locations"],
        "constants": ["--instructions", "10", "--constant-mb", str(CONSTANT_MB)],
        "constants, read completely": ["--instructions", "10", "--constant-mb", str(CONSTANT_MB), "--late"],
    }
    for name, options in made.items():
        path = folder / f"{name.replace(' ', '_')}.mlirbc"
        command = [sys.executable, ROOT / "bench/make_bytecode.py", path, *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        cases.append((name, path, "bytecode"))
    for form in ("hlo", "stablehlo"):
        path = folder / f"ops100k.{form}"
        foundation("convert", form, folder / "ops100k.mlirbc", path)
        cases.append((f"ops100k, as {form}", path, form))
    return cases


def hlo(result, parameters, instruction):
    lines = [f"  p{i} = {shape} parameter({i})" for i, shape in enumerate(parameters)]
    return "\n".join(["HloModule m", "ENTRY main {", *lines, f"  ROOT r = {result} {instruction}", "}", ""])


def elementwise_programs(count):
    def array(kind):
        return f"{kind}[{count}]"

    ops = {"f32": ["add", "exponential", "tanh", "power", "compare", "convert"]}
    ops["bf16"] = ops["f32"]
    ops["s32"] = ["add", "power", "compare", "convert"]
    ops["c64"] = ["add", "exponential", "tanh", "power", "compare"]
    for kind, names in ops.items():
        for op in names:
            x, arity, extra, result = array(kind), 1, "", array(kind)
            if op in ("add", "power", "compare"):
                arity = 2
            if op == "compare":
                extra, result = f", direction={'EQ' if kind == 'c64' else 'LT'}", array("pred")
            if op == "convert":
                result = array("bf16" if kind == "f32" else "f32")
            operands = ", ".join(f"p{i}" for i in range(arity))
            yield f"{op} {kind}", hlo(result, [x] * arity, f"{op}({operands}){extra}")


def contraction_programs(scale):
    m, n, k = 128 * scale, 256, 256
    dims = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    for kind in ("f32", "bf16", "s32"):
        yield f"dot {kind}", m * n * k, hlo(
            f"{kind}[{m},{n}]", [f"{kind}[{m},{k}]", f"{kind}[{k},{n}]"], f"dot(p0, p1), {dims}"
        )
    b = 4 * scale
    window = "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"
    for kind in ("f32", "bf16"):
        yield f"convolution {kind}", b * 32 * 32 * 32 * 9 * 16, hlo(
            f"{kind}[{b},32,32,32]", [f"{kind}[{b},32,32,16]", f"{kind}[3,3,16,32]"], f"convolution(p0, p1), {window}"
        )


def other_programs(count):
    """Ops without a target of their own: only linearity is checked."""
    scalars = "  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
    add = "add {\n" + scalars + "  ROOT c = f32[] add(a, b)\n}\n"
    less = "less {\n" + scalars + "  ROOT c = pred[] compare(a, b), direction=LT\n}\n"
    rows = count // 16
    x, rest = f"f32[{rows},16]", {}
    rest["reduce"] = f"  ROOT r = f32[16] reduce(x, zero), dimensions={{0}}, to_apply=add"
    rest["reduce-window 3x1"] = f"  ROOT r = {x} reduce-window(x, zero), window={{size=3x1 pad=1_1x0_0}}, to_apply=add"
    rest["transpose"] = f"  ROOT r = f32[16,{rows}] transpose(x), dimensions={{1,0}}"
    rest["broadcast"] = f"  s = f32[16] constant({{{', '.join('1' * 16)}}})\n  ROOT r = {x} broadcast(s), dimensions={{1}}"
    rest["pad"] = f"  ROOT r = f32[{rows + 2},16] pad(x, zero), padding=1_1x0_0"
    rest["concatenate"] = f"  ROOT r = f32[{2 * rows},16] concatenate(x, x), dimensions={{0}}"
    rest["sort"] = f"  ROOT r = {x} sort(x), dimensions={{0}}, to_apply=less"
    where = f"  i = s32[{rows}] iota(), iota_dimension=0\n"
    rest["gather"] = where + (
        f"  ROOT r = {x} gather(x, i), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, "
        "index_vector_dim=1, slice_sizes={1,16}"
    )
    rest["scatter"] = where + (
        f"  ROOT r = {x} scatter(x, i, x), update_window_dims={{1}}, inserted_window_dims={{0}}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add"
    )
    for name, body in rest.items():
        main = f"ENTRY main {{\n  x = {x} parameter(0)\n  zero = f32[] constant(0)\n{body}\n}}\n"
        yield f"{name} f32", "HloModule m\n" + add + less + main


def make_runs(folder):
    """Name, path, units of work (multiply-adds or elements), target in ns; each at one and two times the size."""
    runs = []
    for scale in (1, 2):
        programs = [(name, work, text, 5) for name, work, text in contraction_programs(scale)]
        count = ELEMENTS * scale
        programs += [(name, count, text, 50) for name, text in elementwise_programs(count)]
        programs += [(name, count, text, None) for name, text in other_programs(count)]
        for i, (name, work, text, target) in enumerate(programs):
            path = folder / f"run{scale}_{i}.hlo"
            path.write_text(text)
            runs.append((name, scale, path, work, target))
    return runs


def measure(foundation, cases, runs, repetitions):
    results = {"read": {}, "run": {}}
    for name, path, kind in cases:
        memory = foundation("memory", path)
        entry = {"kind": kind, "memory": memory, "read_s": [], "verify_s": []}
        results["read"][name] = entry
    for number in range(repetitions):
        print(f"round {number + 1} of {repetitions}", file=sys.stderr, flush=True)
        for name, path, kind in cases:
            size = path.stat().st_size
            got = foundation("read", 3 if size > 5e6 else 8, path)
            entry = results["read"][name]
            entry.update(bytes=got["bytes"], instructions=got["instructions"], verified=got["verified"])
            entry["read_s"] += got["read_s"]
            entry["verify_s"] += got["verify_s"]
        for name, scale, path, work, target in runs:
            entry = results["run"].setdefault(name, {"target_ns": target})
            at = entry.setdefault(f"x{scale}", {"work": work, "run_s": []})
            at["run_s"] += foundation("run", 2, path)["run_s"]
    return results


def facts_of(repetitions):
    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":")[1].strip()
            break
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "command": common.command("bench/run_foundation.py"),
        "repetitions": repetitions,
        "cpu": model,
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "commit": commit.stdout.strip(),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "load": os.getloadavg()[0],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default=str(ROOT / "build/bin/foundation"))
    parser.add_argument("--corpus", default=str(ROOT / "build/corpus"), help="unpacked, as tools/corpus.py leaves it")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--out", default=str(ROOT / "docs/results"))
    args = parser.parse_args()
    foundation = Foundation(args.program, max(os.sched_getaffinity(0)))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        cases = make_programs(foundation, Path(args.corpus), folder)
        results = {"facts": facts_of(args.repetitions)}
        smallest = folder / "smallest.mlir"
        smallest.write_text("func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }\n")
        results["smallest"] = foundation("memory", smallest)
        results.update(measure(foundation, cases, make_runs(folder), args.repetitions))
    common.save(args.out, "foundation", results)
    print(write_pages.write("foundation", args.out))


if __name__ == "__main__":
    main()
