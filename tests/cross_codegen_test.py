#!/usr/bin/env python3
"""Compiles the CPU kernels of small programs to object files for both processor families, whichever this one is. Nothing is run: the
test is that LLVM generates code, in a process whose crash is a failed test.

    tests/cross_codegen_test.py TOKAMAK TOK_CROSS_CODEGEN [-k PATTERN]"""
import collections
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOKAMAK, CROSS = sys.argv.pop(1), sys.argv.pop(1)
PROGRAMS = sorted(
    path
    for folder, pattern in (("tests/codegen", "*.*"), ("tests/run/ops", "*.*"), ("examples", "*.mlir"))
    for path in (ROOT / folder).glob(pattern)
    if path.suffix in (".hlo", ".mlir") and not path.name.startswith(("gpu_", "cuda_")))


def processors():
    """The processors by vector width in bits, which determines the kernels."""
    of_bits = collections.defaultdict(list)
    for line in subprocess.run([CROSS, "--list"], capture_output=True, text=True, check=True, timeout=60).stdout.splitlines():
        name, bits = line.split()
        of_bits[bits].append(name)
    return of_bits


class CrossCodegen(unittest.TestCase):
    def test_every_kernel(self):
        self.assertGreater(len(PROGRAMS), 100)
        for bits, names in processors().items():
            with tempfile.TemporaryDirectory() as folder:
                texts = []
                for program in PROGRAMS:
                    done = subprocess.run([TOKAMAK, "kernels", program, "--vector-bits", bits], capture_output=True, text=True, timeout=120)
                    if done.returncode == 0 and "\nkernel " in "\n" + done.stdout:  # others are error tests, or have no kernels
                        texts.append(Path(folder) / f"{program.parent.name}.{program.name}")
                        texts[-1].write_text(done.stdout)
                self.assertGreater(len(texts), len(PROGRAMS) // 2)
                # The fallback efforts, too, for one processor each.
                for name, effort in [(name, "0") for name in names] + [(names[0], "1"), (names[0], "2")]:
                    with self.subTest(name, effort=effort):
                        done = subprocess.run([CROSS, "--for", name, effort, *texts], capture_output=True, text=True, timeout=300)
                        report = done.stdout.splitlines()
                        failed = [line for line in report if line.startswith("FAILED")] or report[-1:]
                        self.assertEqual(done.returncode, 0, "\n".join(failed) + done.stderr)


if __name__ == "__main__":
    unittest.main()
