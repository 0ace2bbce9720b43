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


class RunnerTest(unittest.TestCase):
    def passes(self, *directives):
        with tempfile.TemporaryDirectory() as folder:
            lines = "".join(f"// {line}\n" for line in directives)
            (Path(folder) / "a.hlo").write_text(lines + PROGRAM)
            result = subprocess.run([RUNNER, folder], capture_output=True, text=True, timeout=60)
            self.assertIn("tally: ", result.stdout)
            return result.returncode == 0

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


if __name__ == "__main__":
    unittest.main()
