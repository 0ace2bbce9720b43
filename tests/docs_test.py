#!/usr/bin/env python3
"""Runs every command and program that README.md, CONTRIBUTING.md and docs/*.md show, and compares their output with the page.

    tests/docs_test.py build                        all pages (ctest name docs.commands)
    tests/docs_test.py build --update [PAGE]...     writes today's outputs into the pages

docs/testing.md says how each kind of block is checked. tests/docs/commands.py lists the commands that do not run, with the reason."""
import argparse
import re
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from docs import commands, outputs, programs
from docs.check import Page
from docs.commands import ROOT, Reader

try:
    import jax  # noqa: F401
except ImportError:
    print("skipped: no JAX here (scripts/bootstrap makes a .venv that has it)")
    sys.exit(77)

PARSER = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
PARSER.add_argument("build", help="the build folder")
PARSER.add_argument("tests", nargs="*", help="tests of this file (default: all)")
PARSER.add_argument("--update", nargs="*", metavar="PAGE", help="write today's outputs into these pages (default: all)")
ARGUMENTS = PARSER.parse_args()
BUILD = ARGUMENTS.build
PAGES = ["README.md", "CONTRIBUTING.md", "examples/README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))]


def checked(names, scratch):
    """The pages of these names, checked. Two at a time: commands of one page may depend on those above them."""
    made = []
    for name in names:
        folder = Path(scratch) / name.replace("/", "_")
        folder.mkdir()
        made.append(Page(name, (ROOT / name).read_text(), Reader(BUILD, folder)))
    with ThreadPoolExecutor(2) as pool:
        python = [(page, block) for page in made for block in page.python()]
        printed = pool.submit(programs.run_python, made[0].reader, [(page.name, "\n".join(block.lines)) for page, block in python])
        list(pool.map(Page.check, made))
    for page in made:
        page.check_python([result for (other, _), result in zip(python, printed.result()) if other is page])
    return made


def update(names):
    with tempfile.TemporaryDirectory() as scratch:
        made = checked(names, scratch)
    for page in made:
        if page.edits:
            (ROOT / page.name).write_text(page.updated())
            print(f"{page.name}: outputs written: {len(page.edits)}")
    left = [finding for page in made for finding in page.not_updated()]
    print("\n".join(left), end="\n" if left else "")
    return 1 if left else 0


class Pages(unittest.TestCase):
    """One test for each page."""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as scratch:
            cls.pages = {page.name: page for page in checked(PAGES, scratch)}

    def test_options_of_error_pages(self):
        """docs.error_pages checks the examples of docs/errors; here, the commands and options that the advice names."""
        findings = []
        with tempfile.TemporaryDirectory() as scratch:
            reader = Reader(BUILD, scratch)
            for path in sorted((ROOT / "docs/errors").glob("*.md")):
                page = Page(str(path.relative_to(ROOT)), path.read_text(), reader)
                page.check_spans()
                findings += page.findings
        if findings:
            self.fail("\n" + "\n".join(findings))

    def test_exceptions_are_used(self):
        """The tables of what does not run, or not as shown, hold nothing that no page needs."""
        shown = [command.text for page in self.pages.values() for command in page.commands()]
        text = "\n".join(page.text for page in self.pages.values())
        for pattern, _ in commands.NOT_RUN:
            self.assertTrue(any(re.match(pattern, command) for command in shown), pattern)
        for pattern, _ in commands.RUN_AS:
            self.assertTrue(any(re.search(pattern, command) for command in shown), pattern)
        for part in (*commands.READERS_FILES, *commands.OTHERS_OPTIONS):
            self.assertIn(part, text)
        for name in programs.SURROUNDINGS:
            self.assertTrue(any(block.language == "cpp" for block in self.pages[name].blocks), name)


def of_page(name):
    def test(self):
        if findings := self.pages[name].findings:
            self.fail("\n" + "\n".join(findings))

    return test


for name in PAGES:
    setattr(Pages, "test_" + Path(name).with_suffix("").as_posix().replace("/", "_"), of_page(name))


class Rejected(unittest.TestCase):
    """Pages that are wrong in one way each: the checks can fail."""

    def findings(self, text, python=False):
        with tempfile.TemporaryDirectory() as scratch:
            page = Page("page.md", text, Reader(BUILD, scratch)).check()
            if python:
                page.check_python(programs.run_python(page.reader, [("page.md", "\n".join(block.lines)) for block in page.python()]))
            self.text = page.updated()
        return page.findings

    def assert_found(self, part, text, **more):
        found = self.findings(text, **more)
        self.assertEqual(len(found), 1, found)
        self.assertIn(part, found[0])

    def test_nothing_wrong(self):
        self.assertEqual(self.findings("```console\n$ echo a; echo b\na\nb\n```\n`tokamak explain --json`, `--json`\n```\na figure\n```\n"), [])

    def test_wrong_output(self):
        self.assert_found("the output differs", "```console\n$ echo 7.16 us\n7.17 us\n```\n")
        self.assertEqual(self.text, "```console\n$ echo 7.16 us\n7.16 us\n```\n")

    def test_output_of_a_program(self):
        self.assert_found("the output differs", "```console\n$ tokamak explain examples/softmax.mlir --target h200\n2 kernels\n...\n```\n")
        self.assertRegex(self.text, r"\$ .*\n1 kernel, .*\n\.\.\.\n```")

    def test_missing_and_additional_lines(self):
        self.assert_found("the output differs", "```console\n$ echo a; echo b\na\n```\n")
        self.assert_found("the output differs", "```console\n$ echo a\na\nb\n```\n")
        self.assert_found("the output differs", "```console\n$ echo a\n...\n```\n")  # shows nothing of it

    def test_command_that_fails(self):
        self.assert_found("exit code 1 of `false`", "```sh\nfalse\n```\n")
        self.assert_found("exit code 2", "```sh\ntokamak explain no_such_file.hlo\n```\n")
        self.assert_found("exit code 0", "```console\n$ true   # exit code 2\n```\n")

    def test_unknown_option(self):
        self.assert_found("scripts/test has no option --quickly", "```sh\nscripts/test --quickly\n```\n")
        self.assert_found("has no option --fuze", "Use `tokamak explain FILE --fuze`.\n")
        self.assert_found("has the option --fuze", "Use `--fuze`.\n")
        self.assert_found("no preset swift", "```sh\ncmake --preset swift\n```\n")
        self.assert_found("there is no tools/nothing.py", "Use `tools/nothing.py --all`.\n")

    def test_command_in_text(self):
        self.assert_found("exit code 2", "Use `tokamak explain examples/softmax.mlir --target no_machine`.\n")

    def test_unmarked_commands(self):
        self.assert_found("not marked", "```\ntokamak lint FILE\n```\n")
        self.assert_found("'perl'", "```perl\n1\n```\n")

    def test_output_that_nothing_checks(self):
        self.assert_found("that no test runs", "```console\n$ scripts/test\n1 passed\n```\n")
        self.assert_found("runs as", "```console\n$ echo --backend cuda\n--backend cuda\n```\n")

    def test_predictions_of_this_machine(self):
        self.assert_found("use --target h200", "```console\n$ echo 'rates: a CPU (machines/a_cpu.json)'\nrates: ...\n```\n")

    def test_programs(self):
        self.assert_found("NameError", "```python\nnothing\n```\n", python=True)
        self.assert_found("the output differs", "```python\nprint(1)\n```\n```output\n2\n```\n", python=True)
        self.assert_found("not part of the sources", "```cpp\nint f() { return nothing; }\n```\n")
        self.assert_found("the output differs", "```cpp\n#include <cstdio>\nint main() { std::puts(\"1\"); }\n```\n```output\n2\n```\n")
        self.assert_found("not below a program", "```output\n2\n```\n")
        self.assert_found("tok_text_tests rejects it", "```hlo\n// RUN: run\nHloModule m\n```\n")
        self.assert_found("tok_kernel_tests rejects it", "```kernel\nkernel k {\n  index 7\n}\n```\n")


class Outputs(unittest.TestCase):
    """Wildcards, measured times, and outputs that are written again."""

    def test_any_lines(self):
        lines = ["a", "b", "c", "d", "e"]
        for shown in (lines, ["a", "...", "e"], ["...", "e"], ["a", "..."], ["...", "c", "..."], ["a", "b", "...", "c", "d", "e"]):
            self.assertTrue(outputs.matches(shown, lines), shown)
        for shown in (["a", "...", "d"], ["...", "a"], ["e", "..."], ["...", "x", "..."], ["...", "d", "...", "b", "..."], ["..."]):
            self.assertFalse(outputs.matches(shown, lines), shown)
        self.assertFalse(outputs.matches(["a", "...", "a"], ["a"]))

    def test_rest_of_a_line(self):
        self.assertTrue(outputs.matches(["one, two, ..."], ["one, two, three"]))
        self.assertFalse(outputs.matches(["one, three, ..."], ["one, two, three"]))

    def test_times(self):
        table = ["   us predicted  planning ms", "in all   7.16     2.37"]
        self.assertTrue(outputs.matches(table, [table[0], "in all   7.16    12.4"]))
        self.assertFalse(outputs.matches(table, [table[0], "in all   7.17    2.37"]))
        self.assertFalse(outputs.matches(["in all   2.37"], ["in all   2.38"]))  # no such table
        self.assertTrue(outputs.matches(["compile 1.2 ms"], ["compile 30 ms"]))
        self.assertFalse(outputs.matches(["7.16 us predicted"], ["7.17 us predicted"]))
        self.assertTrue(outputs.matches(["7.16 us predicted, 8 measured"], ["7.16 us predicted, 9.5 measured"]))
        shown = "planning takes no longer than for greedy, and saves nothing"
        self.assertTrue(outputs.matches([shown], ["planning 5 ms more than for greedy saves nothing"]))
        self.assertFalse(outputs.matches([shown], ["planning 5 ms more than for unfused saves 8 us per call"]))

    def test_update(self):
        lines = ["1 kernel", "a 2", "b 3", "c 4", "in 9.1 ms"]
        self.assertEqual(outputs.refreshed(["old"], lines), lines)
        self.assertEqual(outputs.refreshed(["2 kernels", "...", "b 7", "...", "in 8 ms"], lines), ["1 kernel", "...", "b 3", "...", "in 8 ms"])
        self.assertEqual(outputs.refreshed(["...", "x"], lines), ["...", "in 9.1 ms"])
        self.assertEqual(outputs.refreshed(["one two ..."], ["one three four five"]), ["one ..."])


if __name__ == "__main__":
    if ARGUMENTS.update is not None:
        sys.exit(update(ARGUMENTS.update or PAGES))
    unittest.main(argv=[sys.argv[0], *ARGUMENTS.tests])
