#!/usr/bin/env python3
"""The error of the cost model: predicted against measured microseconds of kernels of the workloads.

    bench/model_error.py                    exports, measures, fits, and writes model.json and the page model.md in docs/results
    bench/model_error.py --export FOLDER    the programs only (needs JAX); --programs FOLDER: use them
    bench/model_error.py --measured F.json  no measurement: uses earlier measurements
    bench/model_error.py --device cuda      the same for the machine's GPU: model_cuda.json, starting from machines/raw/h200.json
    bench/model_error.py --split 1          another random split of the workloads: does the fit generalize?

Programs are the workloads of bench/workloads.py at several sizes, fused, and some of them also with one kernel per instruction
(--fused: not these). On a GPU, library calls are kernels, too, and those on tensor cores are classes of their own. A kernel is measured by `tokamak explain --measure`: the median of repeated runs in isolation, with the arguments that the program
passes to it. Workloads are split in two by name: on one half `tokamak calibrate --fit` fits the rates of the machine file, the
other half is the test set. Run it on an idle machine.
"""
import argparse
import collections
import concurrent.futures
import datetime
import itertools
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import write_pages
from cpu_sizes import SIZES
from gpu_sizes import GPU_ONLY, GPU_SIZES
from result_pages import common
from result_pages.model import BARS, figures, is_test, special_classes

ROOT = Path(__file__).resolve().parent.parent
MOST = 16  # kernels per workload, sampled evenly
# These also with one kernel per instruction: a planner compares fusion with that.
UNFUSED = ("gelu", "softmax", "layernorm_fwd", "layernorm_bwd", "blackscholes", "xent", "rmsnorm_bf16", "bert_tiny_infer",
           "cartpole_naive", "dropout")


def sizes_of(arguments):
    if not arguments.device:
        return SIZES
    return {name: sizes[-1:] for name, sizes in SIZES.items()} | GPU_SIZES


def missing(arguments, folder):
    """Whether programs have not been exported there."""
    return any(not (folder / f"{name}@{size}.mlir").exists() for name, sizes in sizes_of(arguments).items() for size in sizes)


def export(arguments, folder):
    """Writes each workload as StableHLO text."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    sys.path.insert(0, str(arguments.workloads.resolve().parent))
    import own_python  # noqa: F401
    import jax
    import workloads

    folder.mkdir(parents=True, exist_ok=True)
    for name, sizes in sizes_of(arguments).items():
        for size in sizes:
            path = folder / f"{name}@{size}.mlir"
            if path.exists():
                continue
            fn, args = workloads.make(name, size)
            path.write_text(jax.jit(fn).lower(*args).as_text())
            print(path.name, flush=True)


def explain(arguments, path, unfused):
    command = [str(arguments.tokamak), "explain", str(path), "--json", "--no-compare", "--measure", "--seconds", str(arguments.seconds)]
    if unfused:
        command.append("--unfused")
    done = subprocess.run(command, capture_output=True, text=True, cwd="/tmp", timeout=300)
    if done.returncode != 0:
        print(f"{path.name}: {done.stderr.strip()}", file=sys.stderr)
        return []
    return json.loads(done.stdout)["kernels"]


# ---- GPU: programs share a few processes, since each process takes long to start

TOGETHER = 10


def explain_together(arguments, programs, seconds):
    """{program: its kernels} of [(path, unfused)], all of them fused, or none."""
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as joined:
        joined.write("\n// -----\n".join(path.read_text() for path, _ in programs))
        joined.flush()
        command = [str(arguments.tokamak), "explain", joined.name, "--json", "--no-compare", "--measure", "--seconds", str(seconds),
                   "--target", "h200", "--horizontal", "none", "--device", arguments.device]  # fmt: skip
        done = subprocess.run([*command, *(["--unfused"] if programs[0][1] else [])], capture_output=True, text=True, timeout=300)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if len(lines) == len(programs):
        return {program: line["kernels"] for program, line in zip(programs, lines)}
    if len(programs) == 1:
        print(f"{programs[0][0].name}: exit {done.returncode}: {done.stderr.strip()[-400:]}", flush=True)
        return {programs[0]: []}
    return {k: v for program in programs for k, v in explain_together(arguments, [program], seconds).items()}


def explain_all(arguments, programs):
    """Compiles all of them concurrently, then measures them in sequence."""
    chunks = []
    for unfused in (False, True):
        some = [program for program in programs if program[1] == unfused]
        chunks += [some[i::-(-len(some) // TOGETHER)] for i in range(-(-len(some) // TOGETHER))]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda chunk: explain_together(arguments, chunk, 0), chunks))
    print("compiled", flush=True)
    return {k: v for chunk in chunks for k, v in explain_together(arguments, chunk, arguments.seconds).items()}


def measure(arguments, folder):
    """Several repetitions over all programs, the least time of each kernel, which filters out interference."""
    repetitions = [measure_once(arguments, folder) for _ in range(arguments.repetitions)]
    least = {}
    for row in (row for rows in repetitions for row in rows):
        key = tuple(row[name] for name in ("workload", "size", "unfused", "kernel", "generator"))
        kept = least.setdefault(key, row)
        kept["measured_us"] = min(kept["measured_us"], row["measured_us"])
    rows = list(least.values())
    kinds = itertools.product(sorted(sizes_of(arguments)), (False, True))
    return [row for name, special in kinds for row in drawn([r for r in rows if r["workload"] == name and (r["class"] != r["generator"]) == special])]


def class_of(kernel):
    """What the page lists the kernel as: its generator; apart from those, library calls and kernels on tensor cores."""
    if kernel["library"]:
        return f"library, {kernel['library']}"
    if kernel["generator"] != "contract" or not {"tensor", "multiply16"} & kernel["work"]["ops"].keys():
        return kernel["generator"]
    opcodes = [name.partition(".")[0] for name in kernel["instrs"]]
    return f"tensor cores, {'chains' if opcodes.count('dot') > 1 else 'convolutions' if 'gather' in opcodes else 'contractions'}"


def measure_once(arguments, folder):
    """One row per kernel; equal kernels of a workload count once."""
    rows, seen, programs, sizes = [], set(), [], sizes_of(arguments)
    for path in sorted(folder.glob("*.mlir")):
        name, _, size = path.stem.partition("@")
        if size in sizes.get(name, ()):
            programs += [(path, unfused) for unfused in ((False, True) if name in UNFUSED and not arguments.fused else (False,))]
    together = explain_all(arguments, programs) if arguments.device else None
    for path, many in itertools.groupby(programs, lambda program: program[0]):
        name, _, size = path.stem.partition("@")
        for _, unfused in many:
            for kernel in together[path, unfused] if together is not None else explain(arguments, path, unfused):
                if "work" not in kernel or kernel["measured_us"] is None or (kernel["library"] and not arguments.device):
                    continue
                what = (name, kernel["generator"], json.dumps(kernel["work"], sort_keys=True))
                if what in seen:
                    continue
                seen.add(what)
                rows.append({"workload": name, "size": size, "unfused": unfused, "kernel": kernel["name"],
                             "generator": kernel["generator"], "class": class_of(kernel) if arguments.device else kernel["generator"], "work": kernel["work"],
                             "measured_us": kernel["measured_us"], "predicted_us": kernel["predicted_us"]})
        if together is None:
            print(f"{path.stem}: {len(rows)} kernels so far", flush=True)
    return rows


def drawn(rows):
    """At most MOST of them, evenly by bytes moved."""
    rows = sorted(rows, key=lambda row: (row["work"].get("reads", 0) + row["work"].get("writes", 0), row["kernel"], row["size"]))
    step = max(1.0, len(rows) / MOST)
    return [rows[int(i * step)] for i in range(min(MOST, len(rows)))]


def fit(arguments, rows):
    """Fits rates to one half and adds their predictions to every row."""
    points = arguments.out / "model_points.json"
    fitted = arguments.out / "model_machine.json"
    # Workloads have nearly equal weight, so that one with many kernels does not dominate.
    many = collections.Counter(row["workload"] for row in rows)
    points.write_text(json.dumps(
        [{**r, "weight": 0 if r["test"] else many[r["workload"]] ** -0.5} for r in rows]))
    command = [str(arguments.tokamak), "calibrate", "--fit", str(points), "-o", str(fitted)]
    if arguments.machine:
        command += ["--machine", str(arguments.machine)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    predicted = json.loads(done.stdout)["predicted_us"]
    for row, us in zip(rows, predicted, strict=True):
        row["predicted_us"] = us
    points.unlink()
    return fitted


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", type=Path, default=ROOT / "bench/workloads.py")
    parser.add_argument("--tokamak", type=Path, default=ROOT / "build/bin/tokamak")
    parser.add_argument("--export", type=Path, help="write the programs into this folder, and stop")
    parser.add_argument("--programs", type=Path, help="where they are, or go (build/model_programs)")
    parser.add_argument("--measured", type=Path, help="the raw JSON of an earlier run")
    parser.add_argument("--machine", type=Path, help="a machine file (default: this machine's)")
    parser.add_argument("--seconds", type=float, default=0.03, help="for one kernel")
    parser.add_argument("--repetitions", type=int, default=3, help="over all programs")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results")
    parser.add_argument("--name", help="of the data file (model; of a GPU: model_cuda)")
    parser.add_argument("--device", default="", help="a GPU's kernels, on this backend: cuda (sim-cuda: to try it out)")
    parser.add_argument("--split", type=int, default=0, help="which halves (0: by name, as machines/ were fitted)")
    parser.add_argument("--fused", action="store_true", help="no programs with one kernel per instruction")
    parser.add_argument("--no-fit", action="store_true", help="evaluate the machine file as it is")
    arguments = parser.parse_args()
    suffix = "_cuda" if arguments.device else ""
    arguments.name = arguments.name or f"model{suffix}"
    arguments.programs = arguments.programs or ROOT / f"build/model_programs{suffix}"
    bars = BARS["gpu" if arguments.device else "cpu"]
    if arguments.device and not arguments.machine:
        arguments.machine = ROOT / "machines/raw/h200.json"
    if arguments.export:
        return export(arguments, arguments.export)
    if arguments.measured:
        raw = json.loads(arguments.measured.read_text())
        facts, rows = raw["facts"], raw["kernels"]
    else:
        if missing(arguments, arguments.programs):
            subprocess.run([sys.executable, __file__, "--export", arguments.programs, "--workloads", arguments.workloads, "--device", arguments.device], check=True)
        where = {"device": gpu_name()} if arguments.device else {"cpu": cpu_name(), "cores": len(os.sched_getaffinity(0))}
        facts = {"command": common.command("bench/model_error.py"), **where, "date": datetime.date.today().isoformat()}
        begin = time.time()
        rows = measure(arguments, arguments.programs)
        facts["seconds"] = round(time.time() - begin, 1)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for row in rows:
        # GPU_ONLY apart: the workloads that the machine files were fitted to stay in their half.
        row["test"] = is_test(row["workload"], SIZES if row["workload"] in SIZES else GPU_ONLY, arguments.split)
    if not arguments.no_fit:
        fit(arguments, rows)
    common.save(arguments.out, arguments.name, {"facts": facts, "kernels": rows})
    print(write_pages.write("model", arguments.out, arguments.name))
    test = figures([r for r in rows if r["test"]])
    print(f"figure: median error {test['median_error']:.1%}, tau {test['tau']:.3f} of {test['kernels']} kernels of the test half"
          + "".join(f"; {name} {figures(some)['median_error']:.1%} of {len(some)}" for name, some in special_classes(rows)))  # fmt: skip
    good = test["kernels"] > 0 and test["median_error"] <= bars[0] and test["tau"] >= bars[1]
    print(f"tally: {test['kernels'] if good else 0} passed, {0 if good else 1} failed, 0 skipped")
    return 0 if good else 1


def gpu_name():
    try:
        return subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True).stdout.strip()
    except OSError:
        return "a simulated GPU"


def cpu_name():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main())
