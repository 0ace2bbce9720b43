#!/usr/bin/env python3
"""Runs examples/*.mlir through the command line as a new user would: without JAX, with random arguments, and with every rule explained.

    tests/examples_test.py TOKAMAK"""
import json
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOKAMAK = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else str(ROOT / "build/bin/tokamak")
PROGRAMS = sorted((ROOT / "examples").glob("*.mlir"))


def tokamak(*words):
    return subprocess.run([TOKAMAK, *map(str, words)], capture_output=True, text=True, timeout=300, cwd=ROOT)


class Examples(unittest.TestCase):
    def test_there_are_some(self):
        names = {p.stem for p in PROGRAMS}
        self.assertLessEqual({"cartpole", "softmax", "layernorm_dropout", "attention", "adam", "heat"}, names)
        for program in PROGRAMS:
            self.assertLess(program.stat().st_size, 100_000, program)

    def test_run(self):
        """The README's first command needs only a file, and its output fits on a screen or two."""
        done = tokamak("run", "examples/cartpole.mlir", "--repeat", "3", "--explain_fusion_decisions")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("time: ", done.stdout)
        for part in ("random arguments", "by loop.fuse", "2048 points, 1000 iterations", "rewrites by earlier passes:", "make_mlir.py:"):
            self.assertIn(part, done.stderr)
        self.assertNotIn("cse.equal", done.stderr)
        self.assertLess(len(done.stderr.splitlines()), 40)

    def test_values_asked_for(self):
        """If neither times nor reasons are requested, the command wants values, and no arguments are invented."""
        done = tokamak("run", "examples/softmax.mlir")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--seed N", done.stderr)

    def test_same_as_interpreted(self):
        for program in PROGRAMS:
            if program.stem in ("cartpole", "attention"):  # too slow in the interpreter
                continue
            with self.subTest(program.stem):
                out = ROOT / "build" / f"example_{program.stem}.npz"
                made = tokamak("run", program, "--backend", "interp", "--seed", "5", "--outputs", out)
                self.assertEqual(made.returncode, 0, made.stderr)
                done = tokamak("run", program, "--seed", "5", "--expect", out)
                out.unlink()
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_no_host_steps(self):
        for program in PROGRAMS:
            with self.subTest(program.stem):
                report = json.loads(tokamak("explain", program, "--json", "--no-compare").stdout)
                self.assertEqual(report["host_steps"], 0)

    def test_rules_are_explained(self):
        """Each rule that decided about kernels has an explanation."""
        rules = set()
        for program in PROGRAMS:
            for fusion in ("search", "rules"):
                report = json.loads(tokamak("explain", program, "--json", "--no-compare", f"--fusion={fusion}").stdout)
                rules |= {d["rule"] for d in report["decisions"] if d["rule"].split(".")[0] in ("fusion", "lower", "loop", "xla")}
        self.assertIn("loop.fuse", rules)
        for rule in sorted(r for r in rules if r not in PASSES_REPORT):
            with self.subTest(rule):
                self.assertEqual(tokamak("explain", rule).returncode, 0)


# Rules of passes whose names contain "loop"; `tokamak opt --list` describes those passes.
PASSES_REPORT = {"loop.constant-inside", "loop.counter-result", "loop.dead-carry", "loop.equal-carries", "loop.invariant-result", "loop.no-iteration", "loop.one-iteration"}

if __name__ == "__main__":
    unittest.main()
