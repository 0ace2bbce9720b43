#!/usr/bin/env python3
"""Runs everything that needs a GPU, part by part, and prints one table. Called by tests/gpu/run.

    device.py [--build DIR] [--backend cuda] [--seconds N] [--out DIR] [PART...]

A part that exceeds its time limit is stopped and fails; untimed parts leave the timed ones their time. --backend sim-cuda runs the same parts on the simulated device.
A part is a method of Parts; a line `figure: ...` of its output goes into the table, and so does its tally. With --out the
table is also written to DIR/gpu.json and DIR/gpu.md, as in docs/results.
"""
import argparse
import concurrent.futures
import datetime
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import write_pages
from result_pages import common

SHOWN = 12  # lines of a failed part's output
SIDE_BY_SIDE = 3  # number of untimed parts that run concurrently


class Part(NamedTuple):
    command: list
    seconds: float  # at most
    against: str  # the reference it is compared with
    env: dict = {}
    alone: float = 0  # timed: nothing else runs concurrently; the seconds that it needs when it passes
    verbose: bool = False  # show all of its output


class Parts:
    """The first line of a method's docstring is its description in the table."""

    def __init__(self, args):
        build = Path(args.build).resolve()
        self.bin, self.lib = build / "bin", build / "lib/libtokamak.so"
        self.backend, self.jobs = args.backend, os.cpu_count()
        self.out = Path(args.out or build).resolve()

    def script(self, name, *words):
        return [sys.executable, ROOT / "tests/gpu" / name, *words]

    def device(self):
        """One program, from the disk cache, from a damaged one, 20 times; out of memory"""
        return Part(self.script("smoke.py", self.bin / "tokamak", self.backend), 60, "the interpreter", verbose=True)

    def kernels(self):
        """Kernels of a bundle, twice each"""
        if not Path(ROOT / "build/gpu_bundle/manifest.txt").exists():
            return Part(["echo", "no bundle here: tests/gpu/run --bundle makes it\ntally: 0 passed, 0 failed, 1 skipped"], 5, "the simulator")
        return Part([self.bin / "tok_gpu_kernels", "build/gpu_bundle"], 60, "the simulator, bit by bit", alone=30, verbose=True)

    def text(self):
        """The text tests of values"""
        return Part([self.bin / "tok_text_tests", "--backend", self.backend, "tests/run/ops", "tests/codegen", "tests/fusion"], 120,
                    "the values that they state")  # fmt: skip

    def random(self):
        """401 random programs"""
        command = [self.bin / "random_programs", "--seeds", "0..400", "--pass", f"on:{self.backend}", "--jobs", str(self.jobs)]
        return Part(command, 120, "the interpreter")

    def checked(self):
        """151 wide random programs, kernel by kernel"""
        command = [self.bin / "random_programs", "--wide", "--seeds", "0..150", "--pass", f"on:{self.backend}", "--jobs", str(self.jobs)]
        return Part(command, 120, "the interpreter, on each kernel's own inputs", {"TOKAMAK_CHECK": "kernels"})

    def contractions(self):
        """500 random contractions, with preferred schedules and with small tiles of bulk copies"""
        command = [self.bin / "random_programs", "--contractions", "--seeds", "0..500", "--pass", f"on:{self.backend}", "--pass", f"on:{self.backend}/bulk",
                   "--jobs", str(self.jobs), "--statistics"]  # fmt: skip
        return Part(command, 240, "the interpreter, on each kernel's own inputs", {"TOKAMAK_CHECK": "kernels"})

    def attention(self):
        """100 random attention programs, half of them with gradients"""
        command = [sys.executable, ROOT / "tests/attention_random.py", self.bin / "tokamak", "100", "--backend", self.backend, "--jobs", str(self.jobs)]
        return Part(command, 200, "the interpreter, on each kernel's own inputs")

    def models(self):
        """Gradients of a small BERT; losses of a small decoder over 200 steps, three seeds"""
        device = ["--device", "cuda"] if self.backend == "cuda" else ["gradients"]
        platforms = "tokamak,cuda,cpu" if self.backend == "cuda" else "tokamak,cpu"
        return Part([sys.executable, ROOT / "tests/models_test.py", "--all", *device], 240, "float64 on JAX's CPU; XLA with the same random numbers",
                    {**self.plugin(), "JAX_PLATFORMS": platforms}, verbose=True)  # fmt: skip

    def corpora(self):
        """The corpora that the CPU backend runs"""
        command = [sys.executable, ROOT / "tools/corpus.py", "--tokamak", self.bin / "tokamak", "--backend", self.backend, "-j",
                   str(self.jobs), "--only", "stablehlo.checks,stablehlo.quantized,jax.hlo,xla.run"]  # fmt: skip
        return Part(command, 200, "the values that they state (StableHLO's interpreter, XLA's CPU); bars: tests/corpus_bars.json")

    def bits(self):
        """Programs in two processes, in opposite orders, one after other work"""
        return Part(self.script("same_bits.py", self.bin / "tokamak", self.backend, "2"), 60, "each other, bit by bit")

    def faults(self):
        """Damaged and full caches, no GPU, out of memory, a kernel's fault"""
        return Part(self.script("errors.py", self.bin / "tokamak", self.backend), 90, "docs/errors", self.plugin(), verbose=True)

    def custom(self):
        """Custom kernels: hooks, grids, shared memory, aliases, errors"""
        return Part(self.script("custom_kernels.py"), 60, "NumPy; the unfused program, bit by bit", self.plugin(), verbose=True)

    def sanitizer(self):
        """compute-sanitizer: memcheck over 6 text tests, racecheck over 2"""
        return Part(self.script("sanitizer.py", self.bin / "tok_text_tests", self.backend), 90, "no fault, no race", verbose=True)

    def jax(self):
        """JAX programs: ops, loops, donation, callbacks, transfers, memory"""
        return Part(self.script("jax_programs.py"), 60, "JAX's CPU", self.plugin(), alone=25, verbose=True)

    def harnesses(self):
        """One in 25 of JAX's primitive harnesses, without and with x64"""
        command = [sys.executable, ROOT / "tools/jax_tests.py", "harnesses", "--out", self.out / "harnesses", "-j", str(self.jobs),
                   "--every", "25", "--shard", "20", "--seconds", "110", "--rerun"]  # fmt: skip
        return Part(command, 120, "JAX's CPU; bar: 99 % in the average of primitives", self.plugin())

    def examples(self):
        """The examples of the JAX frontend and the demo, unmodified"""
        return Part(self.script("examples.py"), 100, "XLA's CPU (the demo)", self.plugin(), verbose=True)

    def model(self):
        """Predictions of the cost model for kernels and library calls of the workloads"""
        command = [sys.executable, ROOT / "bench/model_error.py", "--device", self.backend, "--tokamak", self.bin / "tokamak", "--no-fit",
                   "--repetitions", "1", "--seconds", "0.01", "--fused", "--out", self.out, *self.programs()]  # fmt: skip
        return Part(command, 80, "their times on the device; bars: median error 20 %, tau 0.85", {"JAX_PLATFORMS": "cpu"}, alone=70)

    def plans(self):
        """Never slower: plans of the search"""
        command = [sys.executable, ROOT / "bench/never_slower.py", "--device", self.backend, "--seconds", "50", "--out", self.out]
        return Part(command, 70, "unfused and greedy plans, in turn; bar: 1.03 beyond the spread", self.plugin(), alone=55)

    def speed(self):
        """Micro workloads, time per call"""
        command = [sys.executable, ROOT / "bench/run_cuda.py", "--quick", "--check-bars", "--seconds", "60", "--skip", "unrolled_py,adam", "--out",
                   self.out]  # fmt: skip
        return Part(command, 110, "XLA in the same process, in turn; bars: mean 1.3, none below 0.95, compiling 0.7",
                    {**self.plugin(), "JAX_PLATFORMS": "tokamak,cuda,cpu"}, alone=65, verbose=True)  # fmt: skip

    def bars(self):
        """Compiling and calling of tiny programs, a graph of 200 launches, Adam over BERT-base"""
        command = self.script("bars.py", self.bin / "tokamak", "--out", self.out)
        return Part(command, 70, "XLA in the same process",
                    {**self.plugin(), "JAX_PLATFORMS": "tokamak,cuda,cpu"}, alone=40, verbose=True)  # fmt: skip

    def loops(self):
        """20 random loops, all iterations of each"""
        return Part(self.script("loops.py", "--seconds", "60", "--out", self.out), 110,
                    "XLA in the same process, in turn; bars: 90 % are one kernel, none slower than XLA",
                    {**self.plugin(), "JAX_PLATFORMS": "tokamak,cuda,cpu"}, alone=25, verbose=True)  # fmt: skip

    def nvrtc(self):
        """How NVRTC's programs are distributed over threads"""
        return Part(self.script("nvrtc_threads.py"), 60, "one thread", alone=10, verbose=True)

    def plugin(self):
        return {"TOKAMAK_DEVICE": self.backend, "PYTHONPATH": str(ROOT / "python"), "JAX_PLATFORMS": "tokamak,cpu",
                "PJRT_NAMES_AND_LIBRARY_PATHS": f"tokamak:{self.lib}"}  # fmt: skip

    def programs(self):
        carried = ROOT / "build/gpu_carry/model_programs"
        return ["--programs", carried] if carried.exists() else []


ALL = ["device", "kernels", "text", "random", "checked", "contractions", "attention", "models", "corpora", "bits", "faults", "custom", "sanitizer", "harnesses", "examples", "jax", "model", "plans", "speed", "bars", "loops"]  # fmt: skip


def tally(text):
    found = re.findall(r"tally: (\d+) passed, (\d+) failed, (\d+) skipped", text)
    return tuple(int(n) for n in found[-1]) if found else ("-", "-", "-")


def run_part(name, parts, end):
    part = getattr(parts, name)()
    limit = max(1, min(part.seconds, end - time.time()))
    begin = time.time()
    process = subprocess.Popen([str(c) for c in part.command], cwd=ROOT, env={**os.environ, **part.env}, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)  # fmt: skip
    late = False
    try:
        text, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        late = True
        os.killpg(process.pid, 9)
        text, _ = process.communicate()
    seconds = time.time() - begin
    print(shown(name, part, text) + (f"  stopped after {seconds:.0f} s\n" if late else ""), flush=True)
    (parts.out / f"part_{name}.log").write_text(text)
    figures = re.findall(r"^figure: (.*)$", text, re.M)
    result = "fine" if process.returncode == 0 and not late else f"FAILED ({'late' if late else process.returncode})"
    return {"part": name, "what": getattr(Parts, name).__doc__, "against": part.against, "figure": figures[-1] if figures else "",
            "counts": tally(text), "seconds": seconds, "result": result}  # fmt: skip


def complaints(text):
    return [line for line in text.splitlines() if re.search(r"FAILED|error|Error|fault|died", line)]


def shown(name, part, text):
    lines = text.splitlines()
    said = lines[-130:] if part.verbose else complaints(text)[:SHOWN] + lines[-8:]
    return f"==== {name}: {getattr(Parts, name).__doc__}\n" + "".join(f"  {line[:400]}\n" for line in said)


def failures(rows, folder):
    """What the failed parts say, once more: where only the end of the output comes back, theirs may have been cut."""
    lines = []
    for row in rows:
        if row["result"] != "fine":
            said = complaints((folder / f"part_{row['part']}.log").read_text())
            lines += [f"==== {row['part']}: {row['result']}", *(f"  {line[:300]}" for line in said[: 2 * SHOWN])]
    return "\n".join(lines)


def run_all(names, parts, end):
    """Runs untimed parts concurrently, those with the largest limits first, then the timed ones one by one."""
    of = {name: getattr(parts, name)() for name in names}
    timed = [name for name in names if of[name].alone]
    untimed = sorted((name for name in names if not of[name].alone), key=lambda name: -of[name].seconds)
    untimed_end = end - sum(of[name].alone for name in timed)
    rows = {}
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for row in pool.map(lambda name: run_part(name, parts, untimed_end), untimed):
            rows[row["part"]] = row
    for name in timed:
        rows[name] = run_part(name, parts, end)
    return [rows[name] for name in names]


def table(rows):
    lines = [f"{'part':10} {'passed':>7} {'failed':>7} {'skipped':>8} {'seconds':>8}  result"]
    for row in rows:
        passed, failed, skipped = row["counts"]
        lines.append(f"{row['part']:10} {passed:>7} {failed:>7} {skipped:>8} {row['seconds']:8.1f}  {row['result']}  {row['figure']}")
    return "\n".join(lines)


def said(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT).stdout.strip().splitlines()[0]
    except (OSError, IndexError):
        return "?"


def facts_of(seconds, backend):
    device, _, driver = (said("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader") if backend == "cuda" else backend).partition(", ")
    return {"command": "tests/gpu/run", "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
            "commit": os.environ.get("TOKAMAK_COMMIT") or said("git", "rev-parse", "--short", "HEAD"), "device": device, "driver": driver,
            "cores": os.cpu_count(), "seconds": seconds}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, epilog="parts: " + ", ".join(ALL) + ", nvrtc")
    parser.add_argument("--build", default=ROOT / "build-gpu")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--seconds", type=float, default=560, help="for all parts together")
    parser.add_argument("--out", type=Path, default=os.environ.get("OUT"), help="a folder for the table and what parts write")
    parser.add_argument("parts", nargs="*", default=ALL)
    args = parser.parse_args()
    parts, begin = Parts(args), time.time()
    parts.out.mkdir(parents=True, exist_ok=True)
    rows = run_all(args.parts or ALL, parts, begin + args.seconds)
    common.save(parts.out, "gpu", {"facts": facts_of(time.time() - begin, args.backend), "parts": rows})
    write_pages.write("gpu", parts.out)
    print(failures(rows, parts.out))
    print(table(rows))
    return 0 if all(row["result"] == "fine" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
