#!/usr/bin/env python3
"""Pins on the paper's programs, under every planner: never-fuse pins are respected, fuse pins give the interpreter's values.

    pins_test.py build/bin/tokamak"""
import itertools
import json
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODES = ("none", "rules", "greedy", "search", "random")
INSTR = re.compile(r"^\s+(?:ROOT )?([\w.-]+) = \S+ ([\w-]+)\(", re.M)
FREE = {"broadcast", "iota", "slice", "reshape", "bitcast", "constant", "parameter", "tuple", "get-tuple-element"}


def call(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=120)


def errors(tokamak, path, expected, mode, never, fuse):
    """The errors of a program with these pins."""
    # Instructions that passes derived from the instruction itself keep its pins.
    written = {name for name, op in INSTR.findall(path.read_text())}
    free = {name for name, op in INSTR.findall(path.read_text()) if op in FREE}
    pins = [f"--never-fuse={never}", "--fuse=" + ",".join(fuse), f"--fusion={mode}"]
    ran = call(tokamak, "run", path, "--seed", "1", "--backend", "sim", "--expect", expected, *pins)
    report = call(tokamak, "explain", path, "--json", "--no-compare", *pins)
    if ran.returncode != 0 or report.returncode != 0:
        return [f"{path.name} {' '.join(pins)}: {ran.stderr[:400]}{report.stderr[:400]}"]
    mixed = [kernel["instrs"] for kernel in json.loads(report.stdout.splitlines()[0])["kernels"] if never in kernel["instrs"]
             and any(name in written - free - {never} for name in kernel["instrs"])]  # fmt: skip
    return [f"{path.name} {' '.join(pins)}: it shares a kernel: {instrs}" for instrs in mixed]


def main(tokamak):
    draw = random.Random(1)
    passed, wrong = 0, []
    with tempfile.TemporaryDirectory() as folder:
        for path, mode in itertools.product(sorted((HERE / "fusion/paper").glob("*.hlo")), MODES):
            expected = f"{folder}/{path.stem}.npz"
            if mode == MODES[0]:
                call(tokamak, "run", path, "--seed", "1", "--backend", "interp", "--outputs", expected)
            report = call(tokamak, "explain", path, "--json", "--no-compare", "--fusion=none").stdout
            there = {name for kernel in json.loads(report.splitlines()[0])["kernels"] for name in kernel["instrs"]}
            names = sorted(name for name, op in INSTR.findall(path.read_text()) if name in there and op not in FREE)
            never, *fuse = draw.sample(names, min(3, len(names)))
            found = errors(tokamak, path, expected, mode, never, fuse or [never])
            passed, wrong = passed + (not found), wrong + found
    print("\n".join(wrong))
    print(f"tally: {passed} passed, {len(wrong)} failed, 0 skipped")
    return 1 if wrong or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
