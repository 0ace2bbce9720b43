#!/usr/bin/env python3
"""examples/*.mlir through the command line, as a newcomer would: without JAX, arguments drawn, every rule that decided explained.

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
        """The README's first command: nothing but a file is needed, and what is said fits a screen or two."""
        done = tokamak("run", "examples/cartpole.mlir", "--repeat", "3", "--explain_fusion_decisions")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("time: ", done.stdout)
        for part in ("arguments are drawn", "by lower.rounds", "2048 places, 1000 rounds", "rewrites of passes before that:", "make_mlir.py:"):
            self.assertIn(part, done.stderr)
        self.assertNotIn("cse.equal", done.stderr)
        self.assertLess(len(done.stderr.splitlines()), 40)

    def test_values_asked_for(self):
        """Without times or reasons, values are what is wanted: none are made up."""
        done = tokamak("run", "examples/softmax.mlir")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--seed N", done.stderr)

    def test_same_as_interpreted(self):
        for program in PROGRAMS:
            if program.stem in ("cartpole", "attention"):  # too long in the interpreter
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
                told = json.loads(tokamak("explain", program, "--json", "--no-compare").stdout)
                self.assertEqual(told["host_steps"], 0)

    def test_rules_are_told(self):
        """Each rule that decided about kernels has words."""
        rules = set()
        for program in PROGRAMS:
            for fusion in ("search", "rules"):
                told = json.loads(tokamak("explain", program, "--json", "--no-compare", f"--fusion={fusion}").stdout)
                rules |= {d["rule"] for d in told["decisions"] if d["rule"].split(".")[0] in ("fusion", "lower", "loop", "xla")}
        self.assertIn("lower.rounds", rules)
        for rule in sorted(r for r in rules if r not in PASSES_TELL):
            with self.subTest(rule):
                self.assertEqual(tokamak("explain", rule).returncode, 0)


# Rules of passes that carry the word loop; `tokamak opt --list` tells of those passes.
PASSES_TELL = {"loop.constant-inside", "loop.counter-result", "loop.dead-carry", "loop.equal-carries", "loop.invariant-result", "loop.no-round", "loop.one-round"}

if __name__ == "__main__":
    unittest.main()
