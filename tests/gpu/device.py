#!/usr/bin/env python3
"""Runs what needs a GPU, part by part, and prints one table. Called by tests/gpu/run.

    device.py [--build DIR] [--backend cuda] [--seconds N] [PART...]

A part that takes longer than its share is stopped and fails. --backend sim-cuda runs the same on the simulated device.
"""
import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SHOWN = 12  # lines of what failed, of each part


def tally(text):
    found = re.findall(r"tally: (\d+) passed, (\d+) failed, (\d+) skipped", text)
    return tuple(int(n) for n in found[-1]) if found else None


class Parts:
    """Each gives (command, environment, seconds)."""

    def __init__(self, args):
        self.bin = Path(args.build).resolve() / "bin"
        self.lib = Path(args.build).resolve() / "lib/libtokamak.so"
        self.backend, self.jobs = args.backend, os.cpu_count()

    def device(self):
        """What the machine has, and one program."""
        return [sys.executable, ROOT / "tests/gpu/smoke.py", self.bin / "tokamak", self.backend], {}, 60

    def kernels(self):
        """The bundle: kernels against the simulator, bit by bit; large ones timed."""
        if not Path(ROOT / "build/gpu_bundle/manifest.txt").exists():
            return ["echo", "no bundle here: tests/gpu/run --bundle makes it\ntally: 0 passed, 0 failed, 1 skipped"], {}, 5
        return [self.bin / "tok_gpu_kernels", "build/gpu_bundle"], {}, 120

    def text(self):
        """The text tests of values."""
        return [self.bin / "tok_text_tests", "--backend", self.backend, "tests/run/ops", "tests/codegen", "tests/fusion"], {}, 120

    def random(self):
        """Random programs against the interpreter."""
        return [self.bin / "random_programs", "--seeds", "0..400", "--pass", f"on:{self.backend}", "--jobs", str(self.jobs)], {}, 120

    def checked(self):
        """The same, every kernel compared with the interpreter."""
        command = [self.bin / "random_programs", "--wide", "--seeds", "0..150", "--pass", f"on:{self.backend}", "--jobs", str(self.jobs)]
        return command, {"TOKAMAK_CHECK": "kernels"}, 120

    def corpora(self):
        """The corpora, as on the CPU."""
        command = [sys.executable, ROOT / "tools/corpus.py", "--tokamak", self.bin / "tokamak", "--backend", self.backend, "-j",
                   str(self.jobs), "--only", "stablehlo.checks,stablehlo.quantized,jax.hlo,xla.run"]
        return command, {}, 200

    def jax(self):
        """JAX programs through the plugin."""
        return [sys.executable, ROOT / "tests/gpu/jax_programs.py"], self.plugin(), 150

    def harnesses(self):
        """One in ten of JAX's harnesses."""
        command = [sys.executable, ROOT / "tools/jax_tests.py", "harnesses", "--out", "build-gpu/harnesses", "-j", str(self.jobs),
                   "--every", "10", "--seconds", "170"]
        return command, self.plugin(), 200

    def speed(self):
        """Against XLA in one process: bench/run_cuda.py."""
        command = [sys.executable, ROOT / "bench/run_cuda.py", "--quick", "--seconds", "110", "--out", os.environ.get("OUT", "build-gpu")]
        if Path(ROOT / "build/gpu_carry/bench/workloads.py").exists():
            command += ["--workloads", ROOT / "build/gpu_carry/bench/workloads.py"]
        return command, {**self.plugin(), "JAX_PLATFORMS": "tokamak,cuda,cpu"}, 150

    def examples(self):
        """The examples of the JAX door, as they are."""
        run = 'all=cartpole; "$0" -c "import optax" 2> /dev/null && all="$all train_cnn train_transformer"; for f in $all; do echo "== $f"; timeout 60 "$0" "examples/$f.py" && p=$((p+1)) || n=$((n+1)); done'
        run = f'p=0; n=0; {run}; echo "tally: $p passed, $n failed, 0 skipped"; [ $n = 0 ]'
        return ["bash", "-c", run, sys.executable], self.plugin(), 190

    def nvrtc(self):
        """How NVRTC's programs share out threads."""
        return [sys.executable, ROOT / "tests/gpu/nvrtc_threads.py"], {}, 60

    def plugin(self):
        return {"TOKAMAK_DEVICE": self.backend, "PYTHONPATH": str(ROOT / "python"), "JAX_PLATFORMS": "tokamak,cpu",
                "PJRT_NAMES_AND_LIBRARY_PATHS": f"tokamak:{self.lib}"}


ALL = ["device", "kernels", "text", "random", "checked", "jax", "corpora"]


def run_part(name, parts, left):
    command, extra, limit = getattr(parts, name)()
    limit = max(1, min(limit, left))
    env = {**os.environ, **extra}
    begin = time.time()
    process = subprocess.Popen([str(c) for c in command], cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", start_new_session=True)
    late = False
    try:
        text, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        late = True
        os.killpg(process.pid, 9)
        text, _ = process.communicate()
    seconds = time.time() - begin
    counts = tally(text)
    fine = process.returncode == 0 and not late
    print(f"==== {name}: {getattr(Parts, name).__doc__}")
    lines = text.splitlines()
    bad = [line for line in lines if re.search(r"FAILED|error|Error|fault|died", line)]
    quiet = name in ("text", "random", "checked", "corpora", "harnesses")
    for line in (bad[:SHOWN] + lines[-8:] if quiet else lines[-130:]):
        print("  " + line[:400])
    if late:
        print(f"  stopped after {seconds:.0f} s")
    print(flush=True)
    return {"part": name, "fine": fine, "counts": counts, "seconds": seconds, "exit": "late" if late else process.returncode}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=ROOT / "build-gpu")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--seconds", type=float, default=280, help="for all parts together")
    parser.add_argument("parts", nargs="*", default=ALL)
    args = parser.parse_args()
    parts, end = Parts(args), time.time() + args.seconds
    rows = [run_part(name, parts, end - time.time()) for name in args.parts or ALL]
    print(f"{'part':10} {'passed':>7} {'failed':>7} {'skipped':>8} {'seconds':>8}  result")
    for row in rows:
        passed, failed, skipped = row["counts"] or ("-", "-", "-")
        print(f"{row['part']:10} {passed:>7} {failed:>7} {skipped:>8} {row['seconds']:8.1f}  {'fine' if row['fine'] else 'FAILED (' + str(row['exit']) + ')'}")
    return 0 if all(row["fine"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
