#!/usr/bin/env python3
"""Tests of the checks: each must pass a good tree and fail on the violations it is meant to find."""
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import check_headers
import check_planted

TOOLS = pathlib.Path(__file__).resolve().parent
ROOT = TOOLS.parent
GOOD_H = "#pragma once\n\nnamespace tokamak {\n\nint Two();\n\n}  // namespace tokamak\n"
GOOD_CC = '#include "ir/two.h"\n\nnamespace tokamak {\n\nint Two() {\n  return 2;\n}\n\n}  // namespace tokamak\n'


class Checks(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="tok-checks-"))
        self.addCleanup(shutil.rmtree, self.root)
        self.write("tools/layers.txt", (TOOLS / "layers.txt").read_text())
        self.write(".clang-format", (ROOT / ".clang-format").read_text())
        self.write("src/ir/two.h", GOOD_H)
        self.write("src/ir/two.cc", GOOD_CC)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_check(self, script, *args):
        result = subprocess.run([sys.executable, TOOLS / script, "--root", self.root, *args], capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr

    def expect(self, script, text):
        code, output = self.run_check(script)
        self.assertEqual(code, 1, output)
        self.assertIn(text, output)

    def test_a_good_tree_passes_everything(self):
        for script in ("check_layers.py", "check_sizes.py", "check_style.py", "check_names.py", "check_literals.py", "check_references.py", "check_format.py"):
            code, output = self.run_check(script)
            self.assertIn(code, (0, 77), output)
            self.assertTrue(code == 77 or " 0 errors" in output, output)

    # check_literals.py
    def test_literals(self):
        self.write("src/gen/a.cc", "// Rows per block. Chosen: more would spill.\nconstexpr int kRows = 12;\nconstexpr int kMore[] = {3, 4};  // bytes, too\n"
                   "int Two(int bits) { return bits / 64 + 2 - 1; }  // of 77\nconst char* c = \"99\"; char d = '7';\n"
                   "// nothing\nconstexpr int kNone = 0, kFlag = 1 << 1;\n")
        self.write("src/gen/a_test.cc", "int x = 99;\n")
        self.write("src/passes/a.cc", "int x = 99;\n")
        code, output = self.run_check("check_literals.py")
        self.assertEqual(code, 0, output)

    def test_literals_that_say_nothing(self):
        self.write("src/gen/a.cc", "int f(int rows) { return rows * 64 + 0x1F; }\n\nconstexpr int kRows = 1'000;  // rows\n\n"
                   "// Chosen.\nconstexpr double kRatio = 1.5;\n")
        code, output = self.run_check("check_literals.py")
        self.assertEqual(code, 1, output)
        for line in ("a.cc:1: 64 has no name", "a.cc:1: 0x1F has no name", "a.cc:3: kRows states no unit, or no source",
                     "a.cc:6: kRatio states no unit, or no source", " 4 errors"):
            self.assertIn(line, output)

    def expect_literals(self, text, name, file="src/gen/a.cc"):
        self.write(file, text)
        self.expect("check_literals.py", f"{file}:1: {name} ")

    def expect_no_literals(self, text, file="src/gen/a.cc"):
        self.write(file, text)
        code, output = self.run_check("check_literals.py")
        self.assertEqual(code, 0, output)

    def test_widths(self):
        for good in ("bits <= 32 && kRows > 1", "BytesOf(type) < 4", "machine.Lanes(type == kF64 ? 64 : 32)", "bytes / 8", "row_bytes == 4"):
            self.expect_no_literals(f"bool f() {{ return {good}; }}\n")
        for bad in ("lanes >= 4", "bits == a && lanes >= 4", "bytes >= 4", "inner >= 4 || bits == 32", "Lanes(bits) > x && x > 16"):
            self.expect_literals(f"bool f() {{ return {bad}; }}\n", re.findall(r"[<>]=? (\d+)", bad)[0])

    def test_pairs_that_decide(self):
        for bad in ("count / (2 * machine_.cores)", "x * 2 * machine.cores", "2 * rates.min_chunk_us", "kThreads / 2", "std::min<int64_t>(lanes, 2)",
                    "is_long ? Factor(x) : 2", "is_long ? 2 : 1", "2 * blocks < alone", "size < count / 2", "flops <= 2", "2 * machine.Lanes(32)", "budget / 2"):
            self.expect_literals(f"auto f() {{ return {bad}; }}\n", "2")
        self.expect_literals("void f() { s.unroll = 2; }\n", "2")
        self.expect_literals("void f() { while (x > 2 * kLeast && more) x /= 2; }\n", "2")

    def test_pairs_that_are_structure(self):
        for good in ("low + (high - low) / 2", "i % 2", "x.size() == 2", "x.size() < 2", "IsComplex(type) ? 2 : 1", "operand(2)", "Pair{1, 2}",
                     "instr.operand_count() / 2 < i", "std::numeric_limits<int>::max() / 2 > x"):
            self.expect_no_literals(f"auto f() {{ return {good}; }}\n")
        self.expect_no_literals("void f() { while (2 * x <= n) x *= 2; }\n")
        self.expect_no_literals("void f() { for (int i = 0; i < 2 * count; ++i) g(i); }\n")
        self.expect_no_literals("bool f() { return flops <= 2; }\n", "src/lower/a.cc")

    def test_constants_of_two_members_and_static_const(self):
        self.expect_literals("constexpr int kPairs = 2;\n", "kPairs")
        self.expect_literals("static const int kRows = 12;\n", "kRows")
        self.expect_no_literals("constexpr int kUnset = -2;\n")
        for name in ("Options", "TileSchedule", "DotLimits"):
            self.expect_literals(f"struct {name} {{ int candidates = 1; }};\n", f"{name}::candidates", "src/gen/a.h")
        self.expect_no_literals("struct Options {\n  int none = 0;\n  // Rows per block. Chosen: more would spill.\n  int rows = 8;\n};\n", "src/gen/a.h")

    def test_a_choice_has_a_reason(self):
        for bad in ("// Rows. Chosen.", "// Rows (chosen).", "// Rows. Chosen: well.", "// Rows. Chosen: more would spill. Columns. Chosen.", "// Rows. Chosen by a.cc."):
            self.write("src/gen/a.cc", f"{bad}\nconstexpr int kRows = 12;\n")
            self.expect("check_literals.py", "src/gen/a.cc:2: kRows states no unit, or no source")
        for good in ("// Rows. Chosen: more would spill.", "// Rows (chosen: more would spill).", "// Rows, chosen so that all of them fit."):
            self.expect_no_literals(f"{good}\nconstexpr int kRows = 12;\n")

    def test_a_fact_has_one_constant(self):
        comment = "// Rows. Chosen: more would spill."
        self.write("src/gen/a.cc", f"{comment}\nconstexpr int kRows = 12;\n")
        self.write("src/fusion/b.cc", "// Rows of another kind. Chosen: all of them fit.\nconstexpr int kRows = 13;\n")
        self.expect("check_literals.py", "src/gen/a.cc:2: kRows is also defined in src/fusion/b.cc")
        self.write("src/fusion/b.cc", f"{comment}\nconstexpr int kRowsToo = 12;\n")
        self.expect("check_literals.py", "src/gen/a.cc:2: kRows has the value and comment of a constant in src/fusion/b.cc")
        self.write("src/fusion/b.cc", f"{comment}\nconstexpr int kRowsToo = 13;\n")
        self.assertEqual(self.run_check("check_literals.py")[0], 0)

    def test_the_list_of_literals_only_shrinks(self):
        self.write("src/gen/a.cc", "int x = 99, y = 99;\n")
        self.write("tools/literals.txt", "# a comment\nsrc/gen/a.cc 99 2\n")
        self.assertEqual(self.run_check("check_literals.py")[0], 0)
        self.write("src/gen/a.cc", "int x = 99, y = 99, z = 99;\n")
        self.expect("check_literals.py", "src/gen/a.cc:1: 99 has no name")
        self.assertEqual(self.run_check("check_literals.py", "--update")[0], 1)
        self.write("src/gen/a.cc", "int x = 99;\n")
        self.expect("check_literals.py", "tools/literals.txt: src/gen/a.cc has fewer 99 than listed")
        self.assertEqual(self.run_check("check_literals.py", "--update")[0], 0)
        self.assertEqual((self.root / "tools/literals.txt").read_text().splitlines()[1:], ["src/gen/a.cc 99 1"])
        self.write("src/gen/a.cc", "int x = 2;\n")
        self.assertEqual(self.run_check("check_literals.py", "--update")[0], 0)
        self.assertEqual((self.root / "tools/literals.txt").read_text().splitlines()[1:], [])

    # check_layers.py
    def test_layers_upward_include(self):
        self.write("src/ir/op.cc", '#include "ir/two.h"\n#include "passes/dce.h"\n')
        self.expect("check_layers.py", "src/ir/op.cc:2: layer 'ir' may not include 'passes'")

    def test_layers_backend_is_two_deep(self):
        self.write("src/backend/cpu/a.cc", '#include "backend/cuda/b.h"\n')
        self.expect("check_layers.py", "layer 'backend/cpu' may not include 'backend/cuda'")

    def test_layers_subfolder_belongs_to_its_layer(self):
        self.write("src/ir/infer/dot.cc", '#include "text/hlo.h"\n')
        self.expect("check_layers.py", "src/ir/infer/dot.cc:1: layer 'ir' may not include 'text'")

    def test_layers_unknown_folder_and_relative_include(self):
        self.write("src/odd/a.cc", "\n")
        self.expect("check_layers.py", "src/odd/a.cc:1: this folder is not in")
        self.write("src/ir/b.cc", '#include "two.h"\n')
        self.expect("check_layers.py", '"two.h" is not a path from src/')

    def test_layers_table_has_no_cycle(self):
        self.write("tools/layers.txt", "ir: text\ntext: ir\n")
        self.expect("check_layers.py", "each layer stands once, after those it includes")

    # check_sizes.py
    def test_sizes_file(self):
        self.write("src/ir/big.cc", "int x;\n" * 999)
        self.assertEqual(self.run_check("check_sizes.py")[0], 0)
        self.assertIn("999 lines; look twice", self.run_check("check_sizes.py", "--all")[1])
        self.write("src/ir/big.cc", "int x;\n" * 1000)
        self.expect("check_sizes.py", "src/ir/big.cc:1: 1000 lines")

    def test_sizes_table_is_free(self):
        self.write("src/ir/ops.def", "ROW(x)\n" * 5000)
        self.assertEqual(self.run_check("check_sizes.py")[0], 0)

    def test_sizes_function(self):
        body = "  x += '{' + \"}\"[0];  // {\n"
        for head in ("int F(int x) {\n", "template <class T>\nResult<T> A::F(T x) const {\n", "A::A(int x) : a_(x), b_{x} {\n",
                     "struct S {\n  bool operator==(const S& s) const {\n", "auto F(std::map<int, int> m)\n    -> int {\n"):
            close = "}\n" * head.count("{") if "b_{" not in head else "}\n"
            wrap = "namespace t {\nnamespace {\n" + head + "{}" + close + "}}\n"
            self.write("src/ir/f.cc", wrap.replace("{}" + close, body * 90 + close))
            self.expect("check_sizes.py", "is the limit")
            self.write("src/ir/f.cc", wrap.replace("{}" + close, body * 60 + close))
            self.assertEqual(self.run_check("check_sizes.py")[0], 0, head)
        self.write("src/ir/f.cc", "// long: one case an op\nint F() {\n" + body * 90 + "}\n")
        self.assertEqual(self.run_check("check_sizes.py")[0], 0)

    def test_sizes_class_or_table_in_code_is_no_function(self):
        self.write("src/ir/f.cc", "class A final : public B<int> {\n public:\n" + "  int F();\n" * 90 + "};\n"
                   "constexpr Row kRows[] = {\n" + "  {1, f(2)},\n" * 90 + "};\n"
                   "const auto kMap = std::map<int, int>({\n" + "  {1, 2},\n" * 90 + "});\n")
        self.assertEqual(self.run_check("check_sizes.py")[0], 0, self.run_check("check_sizes.py")[1])

    def test_sizes_parameters(self):
        self.write("src/ir/f.cc", "int F(int a, int b, std::map<int, int> c, int d, int e, int f) {\n}\n")
        self.assertEqual(self.run_check("check_sizes.py")[0], 0)
        self.write("src/ir/f.cc", "int F(int a, int b, int c, int d, int e, int f, int g) {\n}\n")
        self.expect("check_sizes.py", "F takes 7 parameters")

    # check_style.py
    def test_style(self):
        for name, text, message in (
                ("src/ir/utils.cc", "\n", "'utils' says nothing"),
                ("src/ir/helpers/a.cc", "\n", "'helpers' says nothing"),
                ("src/ir/a.h", "int F();\n", "no #pragma once"),
                ("src/ir/a.h", "#pragma once\n#include <regex>\n", "src/ir/a.h:2: <regex> is slow"),
                ("src/ir/a.cc", "// " + "TODO: later\n", "src/ir/a.cc:1:"),
                ("src/ir/a.cc", "using " + "namespace std;\n", "src/ir/a.cc:1:")):
            with self.subTest(name + text):
                self.write(name, text)
                self.expect("check_style.py", message)
                (self.root / name).unlink()
        self.write("src/ir/a.cc", "#include <regex>\n")
        self.assertEqual(self.run_check("check_style.py")[0], 0)

    # check_names.py
    def test_names(self):
        within = "namespace tokamak {\nnamespace {\n\n%s\n\n}  // namespace\n}  // namespace tokamak\n"
        for text in ("int One(int a) {\n  return a;\n}", "constexpr int kA = 1, kOne = 2;", "struct One {\n  int a;\n};", "enum Any { kOne };"):
            with self.subTest(text):
                self.write("src/ir/a.cc", within % text)
                self.write("src/ir/deep/b.cc", within % text)
                self.expect("check_names.py", "is also in src/ir/a.cc:4")
        for text in ("int One(double a) {\n  return 1;\n}", "using Dims = std::vector<int>;", "int Two(int a) {\n  struct One {};\n  return a;\n}"):
            with self.subTest(text):
                self.write("src/ir/a.cc", within % "int One(int a) {\n  return a;\n}\n\nusing Dims = std::vector<int>;")
                self.write("src/ir/deep/b.cc", within % text)
                code, output = self.run_check("check_names.py")
                self.assertEqual(code, 0, output)
        self.write("src/ir/deep/b.cc", "namespace tokamak {\nint One(int a) {\n  return a;\n}\n}  // namespace tokamak\n")
        self.assertEqual(self.run_check("check_names.py")[0], 0)

    # check_references.py
    def test_references(self):
        for name, text, message in (
                ("docs/a.md", "see ../shared/corpus\n", "docs/a.md:1: '../shared' is a folder"),
                ("bench/a.py", "x = ROOT / 'shared/bench'\n", "is a folder"),
                ("src/ir/a.h", "// (design.md, Numerics)\n", "is a page"),
                ("src/ir/a.cc", "// What issue 12 asks for.\n", "is an issue"),
                ("scripts/a", "# See (#12).\n", "is an issue")):
            with self.subTest(name + text):
                self.write(name, text)
                self.expect("check_references.py", message)
                (self.root / name).unlink()
        self.write(".ci/run", "export TOKAMAK_CORPUS=../shared/corpus\n")
        self.write("build/a.txt", "../shared\n")
        self.write("tests/a.mlir", "return %0#1, %0#2 // shared memory, issued twice\n")
        code, output = self.run_check("check_references.py")
        self.assertEqual(code, 0, output)

    # check_format.py
    def test_format(self):
        self.write("src/ir/a.cc", "int   F( ) { return 1 ; }\n")
        code, output = self.run_check("check_format.py")
        if code == 77:
            self.skipTest(output)
        self.assertEqual(code, 1)
        self.assertIn("src/ir/a.cc:1: not as clang-format", output)
        self.assertEqual(self.run_check("check_format.py", "--fix")[0], 0)
        self.assertEqual(self.run_check("check_format.py")[0], 0)


    # check_headers.py
    def configure(self):
        compiler = shutil.which("c++") or self.skipTest("no compiler")
        command = f"{compiler} -std=c++20 -I{self.root}/src -Winvalid-pch -include {self.root}/tok_pch.hxx -o CMakeFiles/tok_ir.dir/two.cc.o -c {self.root}/src/ir/two.cc"
        self.write("build/compile_commands.json", json.dumps([{"directory": str(self.root), "command": command, "file": "two.cc"}]))

    def test_headers_alone(self):
        self.configure()
        self.assertEqual(self.run_check("check_headers.py", "--all", "--build", self.root / "build")[0], 0)
        self.write("src/ir/text.h", "#pragma once\n\nstd::string Text();\n")
        code, output = self.run_check("check_headers.py", "--all", "--build", self.root / "build")
        self.assertEqual(code, 1)
        self.assertIn("ir/text.h does not compile alone", output)

    def test_headers_changed_last(self):
        for i in range(30):
            self.write(f"src/ir/h{i}.h", f'#pragma once\n\n#include "ir/h{i + 1}.h"\n' if i < 29 else "#pragma once\n")
        headers = sorted(path.relative_to(self.root / "src") for path in self.root.rglob("*.h"))
        plain = check_headers.latest(headers, self.root)
        self.assertEqual((len(plain), check_headers.latest(headers, self.root)), (4, plain))  # without git, too
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", str(self.root)]
        alone = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}  # a hook sets GIT_* to its repository
        if not shutil.which("git") or subprocess.run([*git, "init", "-q"], capture_output=True, env=alone, check=False).returncode != 0:
            self.skipTest("no git")
        for change in (None, "src/ir/h7.h", "src/ir/h20.h"):
            if change:
                self.write(change, (self.root / change).read_text() + "// changed\n")
            subprocess.run([*git, "add", "src"], env=alone, check=True)
            subprocess.run([*git, "commit", "-qm", "change"], env=alone, check=True)
        names = [str(header) for header in check_headers.latest(headers, self.root)]
        self.assertEqual((names[:2], set(names[2:])), (["ir/h20.h", "ir/h7.h"], {"ir/h6.h", "ir/h19.h"}))
        self.write("src/ir/h12.h", "#pragma once\n\nstd::string Text();\n")
        self.configure()
        code, output = self.run_check("check_headers.py", "--build", self.root / "build")
        self.assertEqual(code, 1)
        self.assertIn("ir/h12.h does not compile alone", output)


class Lines(unittest.TestCase):
    """tools/count_lines.py on a repository of a few lines."""

    write, run_check = Checks.write, Checks.run_check

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="tok-checks-"))
        self.addCleanup(shutil.rmtree, self.root)
        self.write("src/ir/a.cc", "// A comment.\n\nint a;  /* two\nlines */\nint b = '/';\nconst char* c = \"// no comment\";\n")
        self.write("src/backend/cpu/b.def", "ROW(x)\nROW(y)\n")
        self.write("src/ir/a_test.cc", "int tested;\n")
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", str(self.root)]
        alone = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "base"]):
            subprocess.run([*git, *command], env=alone, check=True)

    def rows(self, *args):
        code, output = self.run_check("count_lines.py", *args)
        self.assertEqual(code, 0, output)
        lines = [line.split() for line in output.splitlines()]
        return {name: [int(number) for number in numbers] for name, *numbers in lines if len(numbers) == len(lines[0]) - 1 and numbers[0].isdigit()}

    def test_only_code_counts(self):
        self.assertEqual(self.rows(), {"backend/cpu": [2], "ir": [3], "src": [5]})

    def test_moved_lines_are_neither_removed_nor_added(self):
        self.write("src/ir/a.cc", "int a;\nint d;\n")  # b was removed, c moved, d is new
        self.write("src/text/c.cc", 'struct C {\n  const char* c = "// no comment";\n};\n')
        self.write("src/backend/cpu/b.def", "ROW(x)\n")
        self.write("tests/b.cc", "ROW(y)\n")  # outside src
        self.assertEqual(self.rows("HEAD"), {"backend/cpu": [2, 1, -1, 0, 0], "ir": [3, 2, -1, 1, 1], "text": [0, 3, 3, 0, 2],
                                             "src": [5, 6, 1, 1, 3]})

    def test_an_unknown_revision(self):
        code, output = self.run_check("count_lines.py", "gone")
        self.assertEqual(code, 2, output)


class Words(unittest.TestCase):
    write, run_check, expect = Checks.write, Checks.run_check, Checks.expect

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="tok-checks-"))
        self.addCleanup(shutil.rmtree, self.root)
        self.write("tools/words.txt", "# a list\n\\bteams?\\b | use: thread block\n\\bkTaken\\b | use: kAccepted\n")
        subprocess.run(["git", "-C", self.root, "init", "-q"], check=True)

    def test_a_banned_word_in_a_tracked_file(self):
        self.write("docs/a.md", "One\nTeams of 32\n")
        code, output = self.run_check("check_words.py")
        self.assertEqual(code, 0, output)  # not tracked yet
        subprocess.run(["git", "-C", self.root, "add", "-A"], check=True)
        self.expect("check_words.py", "docs/a.md:2: 'Teams': use thread block")

    def test_capital_letters_count_where_the_list_has_them(self):
        self.write("src/ir/b.cc", "int ktaken, steam, kTaken;\n")
        subprocess.run(["git", "-C", self.root, "add", "-A"], check=True)
        self.expect("check_words.py", "src/ir/b.cc:1: 'kTaken': use kAccepted")

    def test_the_list_itself_is_left_out(self):
        subprocess.run(["git", "-C", self.root, "add", "-A"], check=True)
        code, output = self.run_check("check_words.py")
        self.assertEqual(code, 0, output)


class Prose(unittest.TestCase):
    write, run_check, expect = Checks.write, Checks.run_check, Checks.expect
    GOOD = ("# A title with `code`\n\nThe plan is short (see [the page](a_page_with_a_long_name.md)). It has one kernel.\n\n"
            "- An item\n  that goes on.\n\n| a | table |\n|---|---|\n| " + "of which there are many " * 20 + "|\n\n"
            "```\n" + "code " * 60 + "\n```\n")

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="tok-checks-"))
        self.addCleanup(shutil.rmtree, self.root)
        self.write("tools/constructions.txt", (TOOLS / "constructions.txt").read_text())
        self.write("docs/a.md", self.GOOD)

    def expect_pass(self):
        code, output = self.run_check("check_prose.py")
        self.assertIn(code, (0, 77), output)
        self.assertIn(" 0 errors", output)

    def test_good_prose(self):
        self.write("src/ir/a.h", "// Returns the plan.\n//\n//   " + "a picture " * 40 + "\nint A();  // namespace of a\n"
                   "const char* b = \"// " + "no comment " * 40 + "\";\n")
        self.write("tools/a.py", '"""Runs the plan."""\nX = """' + "no docstring " * 40 + '"""\n')
        self.expect_pass()

    def test_a_long_sentence_of_a_document(self):
        text = "\n".join(["the plan has a word"] * 5)  # 25 words
        self.write("docs/b.md", f"One.\n\nThe end is near: {text}\n{text[:19]}.\n")
        self.expect_pass()  # 30 words after the colon
        self.write("docs/b.md", f"One.\n\nIt is so. Then {text}\n{text[:19]}.\n")
        self.expect("check_prose.py", "docs/b.md:3: a sentence of 31 words (at most 30): 'Then the plan")

    def test_names_in_a_row_are_one_word(self):
        self.write("docs/b.md", "It has " + ",\n".join(f"`name{i}`" for i in range(40)) + ".\n")
        self.expect_pass()

    def test_long_sentences_of_comments(self):
        lines = ["the plan has a word"] * 7
        self.write("src/ir/a.cc", "int a;\n  // " + "\n  // ".join(lines) + "\nint b;  // " + " ".join(lines) + " more.\n")
        self.expect("check_prose.py", "src/ir/a.cc:9: a sentence of 36 words (at most 35)")
        self.assertNotIn("a.cc:2:", self.run_check("check_prose.py")[1])
        self.write("src/ir/a.cc", "int a;  // the plan\n        // " + "\n        // ".join(lines) + "\n")
        self.expect("check_prose.py", "src/ir/a.cc:1: a sentence of 37 words")

    def test_a_long_sentence_of_a_docstring(self):
        self.write("bench/a.py", 'def f():\n    """The plan.\n\n    ' + "the plan " * 18 + '"""\n')
        self.expect("check_prose.py", "bench/a.py:4: a sentence of 36 words")

    def test_wrapping_of_documents(self):
        self.write("docs/b.md", "The plan. " * 10 + "More.\n")
        self.expect("check_prose.py", "docs/b.md:1: 105 columns (at most 100)")
        self.write("docs/b.md", "The plan is short.\n" * 27)
        self.expect("check_prose.py", "docs/b.md:1: a paragraph of 6 lines (at most 5)")
        self.write("docs/results/b.md", self.root.joinpath("docs/b.md").read_text())
        self.root.joinpath("docs/b.md").unlink()
        self.expect_pass()  # a command writes it

    def test_banned_constructions(self):
        pairs = (("What it computes is one number.", "What a kernel does, per element."),
                 ("An array of which one slice is read.", "Two arrays, one of which is read, the next of which is written."),
                 ("This part is not there yet.", "This part is missing."),
                 ("It takes 3 ms a call.", "It takes 3 ms per call."),
                 ("So is the next loop.", "So the next loop is fast."))
        self.write("src/ir/a.h", "".join(f"// {good}\n" for _, good in pairs))
        self.expect_pass()
        self.write("src/ir/a.h", "".join(f"// {bad}\n" for bad, _ in pairs))
        code, output = self.run_check("check_prose.py")
        self.assertEqual(code, 1)
        for line, found in enumerate(("What it computes is", "array of which", "is not there", "ms a call", "So is"), 1):
            self.assertIn(f"src/ir/a.h:{line}: '{found}': use ", output)

    def test_spelling(self):
        if importlib.util.find_spec("codespell_lib") is None:
            self.skipTest("codespell is not installed")
        self.write("src/ir/a.cc", "int CopyIn;  // teh plan\n")
        self.expect("check_prose.py", "src/ir/a.cc:1: teh ==> the")
        self.write("tools/spelling.txt", "teh\n")
        self.expect_pass()


class Pictures(unittest.TestCase):
    """tools/pictures.py on a tree with this one's sources and data."""

    write, run_check = Checks.write, Checks.run_check

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="tok-checks-"))
        self.addCleanup(shutil.rmtree, self.root)
        for folder in ("src", "include", "machines", "python"):
            (self.root / folder).symlink_to(ROOT / folder)
        self.write("tools/layers.txt", (TOOLS / "layers.txt").read_text())
        for name in ("paper.json", "paper_cpu.json"):
            self.write(f"docs/results/{name}", (ROOT / "docs/results" / name).read_text())
        code, output = self.run_check("pictures.py")
        self.assertEqual(code, 0, output)

    def expect(self, text):
        code, output = self.run_check("pictures.py", "--check")
        self.assertEqual(code, 1, output)
        self.assertIn(text, output)

    def test_what_was_drawn_passes(self):
        code, output = self.run_check("pictures.py", "--check")
        self.assertEqual(code, 0, output)

    def test_other_data(self):
        data = json.loads((self.root / "docs/results/paper.json").read_text())
        next(r for r in data["records"] if (r["experiment"], r["side"]) == ("ladder", "tokamak"))["ms"] *= 2
        self.write("docs/results/paper.json", json.dumps(data))
        self.expect("docs/results/paper_ladder.svg: not what its data gives")

    def test_an_edited_picture_and_one_that_nothing_draws(self):
        path = self.root / "docs/architecture.svg"
        path.write_text(path.read_text().replace("planner", "artist"))
        self.write("docs/results/old.svg", "<svg/>")
        self.expect("docs/architecture.svg: not what its data gives")
        self.expect("docs/results/old.svg: nothing draws it")

    def test_the_architecture_has_every_folder(self):
        self.write("tools/layers.txt", (TOOLS / "layers.txt").read_text().replace("analysis:", "analyses:") + "plugins: support\n")
        self.expect("tools/layers.txt has the folder plugins, and the picture of the architecture has not")
        self.expect("the picture of the architecture has the folder analysis, and tools/layers.txt has not")

    def test_words_stay_inside(self):
        """With 0.57 of the font's size for a character, more than the mean of the usual fonts."""
        for path in sorted(self.root.glob("docs/**/*.svg")):
            picture = xml.etree.ElementTree.parse(path).getroot()
            for words in picture.iter("{http://www.w3.org/2000/svg}text"):
                if "transform" in words.attrib:  # upwards
                    continue
                width = 0.57 * float(words.get("font-size")) * len(words.text)
                left = float(words.get("x")) - {"start": 0, "middle": width / 2, "end": width}[words.get("text-anchor")]
                self.assertGreaterEqual(left, 4, f"{path.name}: {words.text}")
                self.assertLessEqual(left + width, float(picture.get("width")) - 4, f"{path.name}: {words.text}")


class Build(unittest.TestCase):
    """tools/build.py with a fake Ninja that prints what the real one would."""

    def build(self, lines, code):
        with tempfile.TemporaryDirectory() as folder:
            ninja = pathlib.Path(folder) / "ninja"
            ninja.write_text("#!/bin/sh\ncat <<'EOT'\n" + "\n".join(lines) + f"\nEOT\nexit {code}\n")
            ninja.chmod(0o755)
            done = subprocess.run([sys.executable, TOOLS / "build.py", "out", "all"], capture_output=True, text=True,
                                  env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
        return done.returncode, done.stdout.splitlines()

    def test_progress_is_short(self):
        code, said = self.build([f"@{i}/700@ Building CXX object CMakeFiles/tok_gen.dir/a{i}.cc.o" for i in range(1, 701)], 0)
        self.assertEqual(code, 0)
        self.assertLess(len(said), 15)
        self.assertRegex(said[4], r"^out: +50 % of 700 steps, about \d+ s left$")
        self.assertRegex(said[-1], r"^out: built after \d+ s$")

    def test_errors_are_passed_on(self):
        code, said = self.build(["@1/9@ Building CXX object a.o", "FAILED: a.o", "a.cc:1: error: no", "ninja: build stopped"], 1)
        self.assertEqual(code, 1)
        self.assertIn("a.cc:1: error: no", said)
        self.assertIn("FAILED", said[-1])


class Headers(unittest.TestCase):
    """A header that is not self-contained must break the build that compiles each header alone."""

    def build(self, header):
        root = pathlib.Path(tempfile.mkdtemp(prefix="tok-headers-"))
        self.addCleanup(shutil.rmtree, root)
        for name in ("CMakeLists.txt", "cmake", "tools"):
            (root / name).symlink_to(ROOT / name)
        (root / "src/ir").mkdir(parents=True)
        (root / "src/ir/a.h").write_text(header)
        subprocess.run(["cmake", "-S", root, "-B", root / "out", "-G", "Ninja", "-DTOK_CHECK_HEADERS=ON", "-DTOK_TESTS=OFF"],
                       check=True, capture_output=True)
        built = subprocess.run(["cmake", "--build", root / "out"], capture_output=True, text=True)
        return built.returncode, built.stdout

    def test_headers_alone(self):
        self.assertEqual(self.build("#pragma once\n#include <vector>\ninline std::vector<int> x;\n")[0], 0)
        code, output = self.build("#pragma once\ninline std::vector<int> x;\n")
        self.assertNotEqual(code, 0)
        self.assertIn("a.h", output)


class Tally(unittest.TestCase):
    def tally(self, cases, *args):
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write(f"<testsuite>{cases}</testsuite>")
            file.flush()
            result = subprocess.run([sys.executable, TOOLS / "tally.py", *args, file.name], capture_output=True, text=True)
        return result.returncode, result.stdout

    def test_counts(self):
        code, output = self.tally(
            '<testcase name="a"/><testcase name="b"><skipped/><system-out>skipped: no GPU\n</system-out></testcase>'
            '<testcase name="c"><system-out>x\nskipped: no clang\ntally: 7 passed, 0 failed, 2 skipped\n</system-out></testcase>'
            '<testcase name="d"><system-out>src/a_test.cc:7: Skipped\nno NVRTC\n[  PASSED  ] 4 tests.\n[  SKIPPED ] 1 test.\n</system-out></testcase>'
            '<testcase name="e"><skipped type="pytest.skip" message="no torch">b.py:3: no torch</skipped></testcase>',
            "--skipped", "no corpora")
        self.assertEqual(code, 0)
        for reason in ("no GPU", "no clang", "no NVRTC", "no torch"):
            self.assertIn(f"1 skipped: {reason}\n" if reason != "no clang" else "2 skipped: no clang\n", output)
        self.assertEqual(output.splitlines()[-1], "12 passed, 0 failed, 6 skipped")

    def test_a_skip_needs_a_reason(self):
        for case in ('<testcase name="a"><skipped message="SKIP_RETURN_CODE=77"/></testcase>',
                     '<testcase name="a"><system-out>tally: 7 passed, 0 failed, 2281 skipped\n</system-out></testcase>'):
            code, output = self.tally(case)
            self.assertEqual(code, 1)
            self.assertIn("no reason given", output)

    def test_a_failure_is_never_lost(self):
        crashed = '<testcase name="a"><failure/><system-out>tally: 7 passed, 0 failed, 0 skipped\n</system-out></testcase>'
        self.assertEqual(self.tally(crashed)[0], 1)
        self.assertEqual(self.tally('<testcase name="a"><failure/></testcase>')[0], 1)
        self.assertEqual(self.tally("", "--failed", "the dev build")[0], 1)


class Planted(unittest.TestCase):
    """Bugs of tests/planted/bugs that name no test, a missing one, or another program."""
    NEW_FILE = "--- /dev/null\n+++ b/src/not_there\n@@ -0,0 +1 @@\n+x\n"

    def errors(self, header, diff=NEW_FILE):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="tok-planted-"))
        self.addCleanup(shutil.rmtree, folder)
        patch = folder / "bugs" / "a.patch"
        patch.parent.mkdir()
        patch.write_text(header + "\n" + diff)
        build = folder / "build"

        def test(name, label, *command):
            return {"name": name, "command": command, "properties": [{"name": "LABELS", "value": [label]}]}

        tests = [test("unit.kernel", "unit", str(build / "bin/tok_unit_kernel"), "--gtest_brief=1"),
                 test("text.codegen", "text", str(build / "bin/tok_text_tests"), "codegen"),
                 test("corpus.long", "slow", str(build / "bin/tokamak"))]
        return list(check_planted.errors_of(patch, {each["name"]: each for each in tests}, build))

    def test_good_ones_pass(self):
        self.assertEqual(self.errors("bug: x\ntarget: tok_unit_kernel\ntest: unit.kernel Form.NamesDoNotCount\n"), [])
        self.assertEqual(self.errors("bug: x\ntarget: tok_text_tests\ntest: text.codegen tests/codegen/scan.hlo\n"), [])

    def test_errors_are_reported(self):
        for header, error in (("bug: x\n", "has no line `test:`"),
                              ("bug: x\ntarget: a\ntest: unit.gone\n", "there is no test unit.gone"),
                              ("bug: x\ntarget: tok_unit_kernel\ntest: unit.kernel Form.Gone\n", "there is no unit test Form.Gone"),
                              ("bug: x\ntarget: tok_text_tests\ntest: text.codegen tests/codegen/gone.hlo\n", "there is no file"),
                              ("bug: x\ntarget: tok_text_tests\ntest: text.codegen tests/run/ops/add.hlo\n", "is no part of text.codegen"),
                              ("bug: x\ntarget: tok_unit_ir\ntest: unit.kernel Form.NamesDoNotCount\n", "runs tok_unit_kernel, not tok_unit_ir"),
                              ("bug: x\ntarget: tokamak\ntest: corpus.long\n", "scripts/test does not run corpus.long")):
            self.assertIn(error, " ".join(self.errors(header)), header)
        stale = "--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-not there\n+x\n"
        self.assertIn("does not apply", " ".join(self.errors("bug: x\ntarget: a\ntest: b\n", stale)))


if __name__ == "__main__":
    unittest.main()
