#!/usr/bin/env python3
"""Runs the examples of the JAX frontend and scripts/demo on the device that TOKAMAK_DEVICE names."""
import importlib.util
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
JOBS = {"scripts/demo": ([], ""), "examples/cartpole.py": ([], ""), "examples/train_cnn.py": (["--steps", "30"], "flax"),
        "examples/train_transformer.py": (["--steps", "10"], "flax")}  # fmt: skip


def run(job):
    path, (words, needs) = job
    if needs and not importlib.util.find_spec(needs):
        return path, None, f"there is no {needs} here"
    command = [ROOT / path, *words] if path.startswith("scripts") else [sys.executable, ROOT / path, *words]
    begin = time.time()
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=90, cwd=ROOT, env={**os.environ, "TOKAMAK_PYTHON": sys.executable})
    except subprocess.TimeoutExpired as late:
        return path, False, f"late: {str(late.stdout)[-600:]}"
    text = done.stdout if done.returncode == 0 else done.stdout + done.stderr
    return path, done.returncode == 0, f"{time.time() - begin:.0f} s\n{text[-1200:]}"


def main():
    with ThreadPoolExecutor(len(JOBS)) as pool:
        results = list(pool.map(run, JOBS.items()))
    for path, good, words in results:
        print(f"{'skipped' if good is None else 'passed' if good else 'FAILED'} {path}: {words}")
    passed, failed = sum(good is True for _, good, _ in results), sum(good is False for _, good, _ in results)
    print("figure: " + ", ".join(f"{Path(path).name} {'not here' if good is None else 'fine' if good else 'FAILED'}" for path, good, _ in results))
    print(f"tally: {passed} passed, {failed} failed, {len(results) - passed - failed} skipped")
    return 1 if failed or not passed else 0


sys.exit(main())
