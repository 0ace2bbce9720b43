#!/usr/bin/env python3
"""The runner of text tests accepts correct tests and rejects incorrect ones.

    tests/runner_test.py build/bin/tok_text_tests
"""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RUNNER = sys.argv.pop(1) if len(sys.argv) > 1 else "build/bin/tok_text_tests"

PROGRAM = """HloModule m
ENTRY main {
  a = s32[] constant(1)
  b = s32[] add(a, a)
  ROOT c = s32[] multiply(b, b)
}
"""


# Fusion pays: one kernel instead of three.
CHAIN = """HloModule m
ENTRY main {
  x = f32[4096] parameter(0)
  a = f32[4096] add(x, x)
  b = f32[4096] multiply(a, x)
  ROOT c = f32[4096] subtract(b, a)
}
"""

DOT = """HloModule m
ENTRY main {
  x = f32[256,256] parameter(0)
  w = f32[256,256] parameter(1)
  ROOT d = f32[256,256] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
# Fits, but is costlier than the schedule that a dot by itself gets.
SLOW = "--library off --schedule 'd=contract tile=16x16x16 inner=16x16 threads=32'"


class RunnerTest(unittest.TestCase):
    def output(self, *directives, program=PROGRAM):
        with tempfile.TemporaryDirectory() as folder:
            lines = "".join(f"// {line}\n" for line in directives)
            (Path(folder) / "a.hlo").write_text(lines + program)
            result = subprocess.run([RUNNER, folder], capture_output=True, text=True, timeout=60)
            self.assertIn("tally: ", result.stdout)
            self.assertEqual(result.returncode == 0, "FAILED" not in result.stdout)
            return result.stdout

    def passes(self, *directives, program=PROGRAM):
        return "FAILED" not in self.output(*directives, program=program)

    def test_out_matches_in_order(self):
        convert = "RUN: convert --to hlo"
        self.assertTrue(self.passes(convert, "OUT: constant(1)", "OUT: add(a, a)", "OUT: multiply("))
        self.assertFalse(self.passes(convert, "OUT: add(a, a)", "OUT: constant(1)"))

    def test_one_text_matches_one_line(self):
        convert = "RUN: convert --to hlo"
        self.assertTrue(self.passes(convert, "OUT: = s32[]", "OUT: = s32[]", "OUT: = s32[]"))
        self.assertFalse(self.passes(convert, *["OUT: = s32[]"] * 4))

    def test_err_matches_in_order(self):
        run = ("RUN: run --backend nothing", "ERROR: TK6002")
        self.assertTrue(self.passes(*run, "ERR: error", "ERR: nothing"))
        self.assertFalse(self.passes(*run, "ERR: nothing", "ERR: error["))

    def test_absent_texts(self):
        self.assertFalse(self.passes("RUN: convert --to hlo", "OUT: subtract"))

    def test_values_of_plans(self):
        kernels, smaller = "RUN: kernels --no-text", "SMALLER: 4096=33"
        self.assertTrue(self.passes(kernels, program=CHAIN))
        self.assertTrue(self.passes(kernels, smaller, program=CHAIN))
        wrong = kernels + " --corrupt-kernel 0"
        self.assertIn("TK4006", self.output(wrong, program=CHAIN))
        self.assertIn("the smaller program", self.output(wrong, smaller, program=CHAIN))
        self.assertTrue(self.passes(wrong, "UNCHECKED: values: it is wrong on purpose", program=CHAIN))
        self.assertFalse(self.passes(wrong, "UNCHECKED: values", program=CHAIN))
        self.assertIn("SMALLER changes nothing", self.output(kernels, "SMALLER: 409=33", program=CHAIN))

    def test_a_plan_costlier_than_no_fusion(self):
        values, unchecked = "UNCHECKED: values: this is about cost", "UNCHECKED: cost: the schedule is forced"
        slow = "RUN: kernels --target cuda --no-text " + SLOW
        self.assertIn("that of the unfused program", self.output(slow, values, program=DOT))
        self.assertTrue(self.passes(slow, values, unchecked, program=DOT))
        for command in ("RUN: kernels --target cuda --no-text", "RUN: explain --target h200"):
            self.assertTrue(self.passes(command, values, program=DOT))
            self.assertIn("not needed", self.output(command, values, unchecked, program=DOT))

    def test_cost(self):
        kernels = "RUN: kernels --target cuda --no-text"
        self.assertTrue(self.passes(kernels, "COST: <= 100 us", program=CHAIN))
        self.assertIn("the limit 0.001", self.output(kernels, "COST: <= 0.001 us", program=CHAIN))
        self.assertIn("COST needs --target", self.output("RUN: kernels --no-text", "COST: <= 100 us", program=CHAIN))
        for text in ("100 us", "<= us", "<= 1x us", "<= -1 us"):
            self.assertIn("is not like", self.output(kernels, "COST: " + text, program=CHAIN))

    def test_cheaper_than(self):
        kernels = "RUN: kernels --target cuda --no-text"
        self.assertTrue(self.passes(kernels, "CHEAPER-THAN: --fusion none", program=CHAIN))
        self.assertIn("not below that with --skip cse", self.output(kernels, "CHEAPER-THAN: --skip cse", program=CHAIN))
        self.assertIn("no cost is predicted with", self.output(kernels, "CHEAPER-THAN: --skip nothing", program=CHAIN))


if __name__ == "__main__":
    unittest.main()
