#!/usr/bin/env python3
"""Compiler plugins through the command line: the examples, plugins that misbehave, and the interface of the header.

    tests/plugins_test.py TOKAMAK CXX CC"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CC = sys.argv.pop(3) if len(sys.argv) > 3 else "cc"
CXX = sys.argv.pop(2) if len(sys.argv) > 2 else "c++"
TOKAMAK = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else str(ROOT / "build/bin/tokamak")
SCRATCH = tempfile.TemporaryDirectory()
HERE = Path(SCRATCH.name)

PROGRAM = """HloModule scaled

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[64,32] parameter(0)
  three = f32[] constant(3)
  threes = f32[64,32] broadcast(three), dimensions={}
  scaled = f32[64,32] divide(x, threes)
  grown = f32[64,32] exponential(scaled)
  zero = f32[] constant(0)
  sums = f32[64] reduce(grown, zero), dimensions={1}, to_apply=add
  spread = f32[64,32] broadcast(sums), dimensions={0}
  ROOT y = f32[64,32] divide(grown, spread)
}
"""


def tokamak(*words, bad=None, **variables):
    variables = {**os.environ, "TOKAMAK_CACHE": "off", **variables}
    variables.pop("TOKAMAK_PLUGINS", None) if "TOKAMAK_PLUGINS" not in variables else None
    if bad:
        variables["BAD_PLUGIN"] = bad
    return subprocess.run([TOKAMAK, *map(str, words)], capture_output=True, text=True, timeout=120, env=variables)


def compile_plugin(source, *flags):
    out = HERE / (Path(source).stem + "".join(flags).translate(str.maketrans("-=+/", "____")) + ".so")
    in_c = str(source).endswith(".c")
    standard = ["-std=c99", "-pedantic"] if in_c else ["-std=c++17"]
    command = [CC if in_c else CXX, *standard, "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{ROOT}/include", *flags, str(source),
               "-o", str(out)]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    return out


def setUpModule():
    global MODEL, RECIPROCAL, POLICY, TANH, RULE, BAD, EMPTY, EXPECTED
    MODEL = HERE / "model.hlo"
    MODEL.write_text(PROGRAM)
    empty = HERE / "empty.c"
    empty.write_text("int x;\n")
    sources = [ROOT / "examples/plugins/reciprocal.cc", ROOT / "examples/plugins/policy.c", ROOT / "examples/plugins/tanh.cc", ROOT / "examples/plugins/rule.c",
               ROOT / "tests/plugins/bad.cc", empty]  # fmt: skip
    with ThreadPoolExecutor(2) as pool:
        RECIPROCAL, POLICY, TANH, RULE, BAD, EMPTY = pool.map(compile_plugin, sources)
    EXPECTED = HERE / "expected.npz"
    done = tokamak("run", MODEL, "--backend", "interp", "--seed", "3", "--outputs", EXPECTED)
    assert done.returncode == 0, done.stderr


def decisions(*words, **variables):
    done = tokamak("explain", MODEL, "--json", "--no-compare", *words, **variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["decisions"]


def of_rule(rule, *words, **variables):
    return [d for d in decisions(*words, **variables) if d["rule"] == rule]


class Examples(unittest.TestCase):
    def test_at_most_forty_lines(self):
        for path in [*(ROOT / "examples/plugins").glob("*.c*"), ROOT / "examples/fusion_policy.py"]:
            self.assertLessEqual(len(path.read_text().splitlines()), 40, path)

    def test_pass(self):
        done = tokamak("opt", MODEL, "--plugin", RECIPROCAL, "--decisions", "--check-values")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("multiply(", done.stdout)
        self.assertIn("reciprocal.divide", done.stderr)
        self.assertNotIn("multiply(", tokamak("opt", MODEL).stdout)

    def test_values(self):
        for backend in ("cpu", "sim-cuda"):
            done = tokamak("run", MODEL, "--seed", "3", "--expect", EXPECTED, "--plugin", RECIPROCAL, "--plugin", POLICY,
                           "--check-plugins", "--strict-plugins", "--backend", backend)  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_strict_leaves_it_out(self):
        """A pass that may round does not run with --strict."""
        self.assertTrue(of_rule("reciprocal.divide", "--plugin", RECIPROCAL))
        self.assertFalse(of_rule("reciprocal.divide", "--plugin", RECIPROCAL, "--strict"))

    def test_environment(self):
        paths = f"{RECIPROCAL}:{POLICY}"
        self.assertTrue(of_rule("reciprocal.divide", TOKAMAK_PLUGINS=paths))
        done = tokamak("explain", MODEL, TOKAMAK_PLUGINS=f"{RECIPROCAL}:/no/such.so")
        self.assertEqual(done.returncode, 2)
        self.assertIn("TK6201", done.stderr)
        self.assertIn("TOKAMAK_PLUGINS names it", done.stderr)

    def test_cost_hook(self):
        records = of_rule("plugin.cost", "--plugin", RECIPROCAL)
        self.assertTrue(records)
        for record in records:
            self.assertAlmostEqual(record["after_us"], 1.1 * record["before_us"], places=6)

    def test_generator(self):
        program = HERE / "tanh.hlo"
        program.write_text("HloModule t\n\nENTRY main {\n  x = f32[64,1024] parameter(0)\n  ROOT y = f32[64,1024] tanh(x)\n}\n")
        done = tokamak("explain", program, "--no-compare", "--decisions", "--plugin", TANH, "--kernel", "1")
        self.assertIn("135135", done.stdout, done.stderr)
        report, plain = (json.loads(tokamak("explain", program, "--no-compare", "--json", *words).stdout)
                         for words in (("--plugin", TANH), ()))  # fmt: skip
        self.assertLess(report["fused"]["predicted_us"], plain["fused"]["predicted_us"])
        self.assertIn("plugin.generator", [d["rule"] for d in report["decisions"]])
        out = HERE / "tanh.npz"
        tokamak("run", program, "--backend", "interp", "--seed", "3", "--outputs", out)
        done = tokamak("run", program, "--seed", "3", "--expect", out, "--plugin", TANH, TOKAMAK_CHECK="kernels")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_rewrite(self):
        program = HERE / "logadd.hlo"
        program.write_text("HloModule l\n\nENTRY main {\n  a = f32[64,32] parameter(0)\n  b = f32[64,32] parameter(1)\n"
                           "  c = f32[64,32] exponential(b)\n  d = f32[64,32] exponential(a)\n  e = f32[64,32] add(c, d)\n"
                           "  ROOT f = f32[64,32] log(e)\n}\n")  # fmt: skip
        done = tokamak("opt", program, "--plugin", RULE, "--decisions")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("log-plus-one", done.stdout, done.stderr)
        self.assertIn("rule.logaddexp", done.stderr)
        out = HERE / "logadd.npz"
        tokamak("run", program, "--backend", "interp", "--seed", "3", "--outputs", out)
        done = tokamak("run", program, "--seed", "3", "--expect", out, "--plugin", RULE)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_wrong_rewrite(self):
        """Pattern and replacement are compared when the plugin is loaded."""
        source = HERE / "wrong_rule.c"
        source.write_text((ROOT / "examples/plugins/rule.c").read_text().replace("maximum(x, y)", "minimum(x, y)"))
        done = tokamak("explain", MODEL, "--plugin", compile_plugin(source))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("TK3008", done.stderr)
        self.assertIn("the rule rule.logaddexp of the plugin rule", done.stderr)

    def test_loaded_twice(self):
        done = tokamak("explain", MODEL, "--plugin", RECIPROCAL, "--plugin", RECIPROCAL)
        self.assertEqual(done.returncode, 0, done.stderr)


class Bad(unittest.TestCase):
    """A plugin that misbehaves: compilation goes on without it, with a warning and a decision; with --strict-plugins it is an error."""

    def check(self, mode, code, text, *words):
        done = tokamak("run", MODEL, "--seed", "3", "--expect", EXPECTED, "--plugin", BAD, *words, bad=mode)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("warning"), 1, done.stderr)
        for part in (f"warning[{code}]", "of the plugin bad", "bad.so", text):
            self.assertIn(part, done.stderr)
        done = tokamak("run", MODEL, "--seed", "3", "--plugin", BAD, "--strict-plugins", *words, bad=mode)
        self.assertEqual(done.returncode, 2, done.stderr)
        for part in (f"error[{code}]", "of the plugin bad", text):
            self.assertIn(part, done.stderr)

    def test_good(self):
        done = tokamak("run", MODEL, "--seed", "3", "--expect", EXPECTED, "--plugin", BAD, "--strict-plugins", "--check-plugins")
        self.assertEqual((done.returncode, "warning" in done.stderr), (0, False), done.stderr)

    def test_passes(self):
        modes = {
            "crash": ("TK6205", "it crashes with SIGSEGV"),
            "abort": ("TK6205", "it crashes with SIGABRT"),
            "throw": ("TK6205", "it throws an exception: bad luck"),
            "throw-int": ("TK6205", "it throws an exception"),
            "hang": ("TK6205", "0.3 s of processor time are used up"),
            "fail": ("TK6205", "it is Tuesday"),
            "negative": ("TK6205", "it returned -3"),
            "wrong-shape": ("TK6205", "replace: y is f32[64,32]"),
            "bad-text": ("TK6205", "frobnicate"),
            "bad-operand": ("TK6205", "$1 is none of the 1 operands"),
            "set-text": ("TK6206", "it changes the interface"),
            "half-done": ("TK6205", "in the middle"),
        }
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda item: self.check(item[0], *item[1]), modes.items()))
        records = of_rule("plugin.failed", "--plugin", BAD, bad="crash")
        self.assertEqual(len(records), 1)
        self.assertIn("compiled without it", records[0]["because"])

    def test_replaced_by_what_it_computes(self):
        """An operand is replaced by a value that is computed from it: what computes that value keeps the operand."""
        done = tokamak("run", MODEL, "--seed", "3", "--expect", EXPECTED, "--plugin", BAD, "--strict-plugins", bad="cycle")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_wrong_values(self):
        self.check("wrong-values", "TK6206", "it changes values", "--check-plugins")
        done = tokamak("run", MODEL, "--seed", "3", "--expect", EXPECTED, "--plugin", BAD, bad="wrong-values")
        self.assertEqual(done.returncode, 1)  # no check was requested

    def test_hooks(self):
        self.check("cost-throws", "TK6205", "no number")
        self.check("cost-infinite", "TK6205", "it predicts 1e+300 us")
        self.check("generator-crashes", "TK6205", "SIGSEGV")
        self.check("generator-nonsense", "TK6205", "line 3 of the kernel")
        self.check("generator-arguments", "TK6205", "arguments")
        self.check("policy-throws", "TK6205", "no opinion")
        self.check("policy-answer", "TK6205", "it returned 17")
        self.check("policy-weight", "TK6205", "-1 is no weight")


class Loading(unittest.TestCase):
    def check(self, code, text, *words, bad=None, status=2):
        done = tokamak("explain", MODEL, *words, bad=bad)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn(code, done.stderr)
        self.assertIn(text, done.stderr)

    def test_files(self):
        self.check("TK6201", "no/such.so", "--plugin", "/no/such.so")
        self.check("TK6201", "plugin", "--plugin", MODEL)
        self.check("TK6201", "does not export tok_plugin_init", "--plugin", EMPTY)

    def test_registration(self):
        self.check("TK6202", "version 99", "--plugin", BAD, bad="old")
        self.check("TK6203", "two words", "--plugin", BAD, bad="name")
        self.check("TK6203", "did you mean 'simplify'", "--plugin", BAD, bad="place")
        self.check("TK6203", "no function", "--plugin", BAD, bad="no-function")
        self.check("TK6203", "too short", "--plugin", BAD, bad="short")
        self.check("TK6203", "bad.pass is registered twice", "--plugin", BAD, bad="twice")
        self.check("TK6203", "no valid name", "--plugin", BAD, bad="no-name")

    def test_init(self):
        self.check("TK6204", "SIGSEGV", "--plugin", BAD, bad="init-crash")
        self.check("TK6204", "not today", "--plugin", BAD, bad="init-throw")
        self.check("TK6204", "no licence", "--plugin", BAD, bad="init-fail")
        self.check("TK6204", "returned 5", "--plugin", BAD, bad="init-code")

    def test_same_name(self):
        other = HERE / "other.so"
        other.write_bytes(BAD.read_bytes())
        self.check("TK6203", "bad", "--plugin", BAD, "--plugin", other)

    def test_smaller_struct(self):
        """A plugin that was built against a header with fewer members: what it does not have is not read."""
        done = tokamak("run", MODEL, "--seed", "3", "--expect", EXPECTED, "--plugin", BAD, "--strict-plugins", bad="smaller")
        self.assertEqual(done.returncode, 0, done.stderr)


class Header(unittest.TestCase):
    def test_compiles_alone(self):
        for name, compiler, flags in (("h.c", CC, ["-std=c99", "-pedantic"]), ("h.cc", CXX, ["-std=c++11", "-pedantic"])):
            source = HERE / name
            source.write_text("#include <tokamak/tokamak_plugin.h>\n#include <tokamak/tokamak_plugin.h>\n")
            subprocess.run([compiler, *flags, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{ROOT}/include", str(source)], check=True)


class Policies(unittest.TestCase):
    def test_in_c(self):
        source = HERE / "veto.c"
        source.write_text("""#include <string.h>
#include <tokamak/tokamak_plugin.h>
static int decide(const tok_move* move, double* weight, void* user) {
  (void)user, (void)weight;
  return strstr(move->producer_ops, "exponential") != NULL ? TOK_VETO : TOK_NO_OPINION;
}
static double last_first(const tok_ready_step* step, void* user) {
  (void)user;
  return step->position;
}
int tok_plugin_init(const tok_plugin_host* host, tok_plugin* plugin) {
  TOK_PLUGIN(host, plugin, "veto", "1.0");
  tok_fusion_policy policy = {sizeof policy, "veto.exponential", decide, NULL};
  tok_order_policy order = {sizeof order, "veto.order", last_first, NULL};
  if (host->add_fusion_policy(plugin, &policy) != 0) return -1;
  return host->add_order_policy(plugin, &order);
}
""")
        veto = compile_plugin(source)
        plain = json.loads(tokamak("explain", MODEL, "--json", "--no-compare").stdout)
        for mode in ("search", "greedy"):
            done = tokamak("explain", MODEL, "--json", "--no-compare", "--plugin", veto, "--fusion", mode)
            report = json.loads(done.stdout)
            self.assertGreater(len(report["kernels"]), len(plain["kernels"]))
            records = [d for d in report["decisions"] if d["rule"] == "policy.veto"]
            self.assertTrue(records)
            self.assertIn("veto.exponential", records[0]["because"])
        # A constraint of the user precedes the policy.
        done = tokamak("explain", MODEL, "--json", "--no-compare", "--plugin", veto, "--require-fused", "grown,sums")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = tokamak("run", MODEL, "--seed", "3", "--expect", EXPECTED, "--plugin", veto)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
