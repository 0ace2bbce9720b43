#!/usr/bin/env python3
"""`tokamak explain` from the user's side: tables, decisions, lints, comparisons, estimates.

    tests/cli_explain_test.py build/bin/tokamak
"""
import json
import sys
import unittest

from cli_case import CliCase, DOUBLE, STEPS

HORIZONTAL = """HloModule m
ENTRY main {
  a = f32[100] parameter(0)
  b = f32[7,9] parameter(1)
  x = f32[100] negate(a), metadata={source_file="train.py" source_line=3}
  y = f32[7,9] abs(b), metadata={source_file="train.py" source_line=5}
  ROOT t = (f32[100], f32[7,9]) tuple(x, y)
}
"""
DOT = """HloModule m
ENTRY main {
  x = bf16[128,128] parameter(0)
  w = bf16[128,128] parameter(1)
  y = bf16[128,128] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = bf16[128,128] tanh(y)
}
"""
ESTIMATED = """HloModule m
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = SHAPE parameter(0)
  i = s32[16,1] parameter(1)
  u = f32[16,64] parameter(2)
  zero = f32[] constant(0)
  ROOT r = VALUE
}
"""


class CliExplainTest(CliCase):
    def test_explain_horizontal(self):
        file = self.write("horizontal.hlo", HORIZONTAL)
        explained = json.loads(self.tokamak("explain", file, "--json", "--horizontal", "all").stdout)["kernels"]
        self.assertEqual([(k["generator"], len(k["parts"])) for k in explained], [("horizontal", 2)])
        self.assertEqual(sorted(explained[0]["instrs"]), ["x", "y"])
        self.assertEqual((explained[0]["reads_bytes"], explained[0]["writes_bytes"]), (652, 652))
        self.assertEqual(len(json.loads(self.tokamak("explain", file, "--json", "--horizontal", "none").stdout)["kernels"]), 2)
        text = self.tokamak("explain", file, "--horizontal", "all").stdout
        self.assertIn("1 kernel,", text)
        self.assertIn("train.py:3", text)

    def test_explain(self):
        file = self.write("steps.hlo", STEPS)
        text = self.tokamak("explain", file).stdout
        self.assertIn("2 kernels, 1 host step,", text)
        self.assertIn("e, y\n", text)
        self.assertIn("model.py:11, model.py:12", text)
        explained = json.loads(self.tokamak("explain", file, "--json").stdout)
        kernels = explained["kernels"]
        self.assertEqual([kernel["generator"] for kernel in kernels], ["loop", "host", kernels[2]["generator"]])
        self.assertEqual([kernel["calls"] for kernel in kernels], [1, 1, 1])
        self.assertEqual(kernels[0]["reads_bytes"], 128)
        self.assertIn("all-reduce", kernels[1]["why"])
        self.assertEqual(kernels[1]["lines"], ["model.py:13"])
        self.assertEqual(explained["host_steps"], 1)

    def test_explain_measures_the_candidates_of_contractions(self):
        if "sim-cuda" not in self.tokamak("run", self.write("ok.hlo", DOUBLE.replace("TYPE", "f32[3]")), "--backend", "none", expect=None).stderr:
            self.skipTest("no simulated GPU in this build")
        file = self.write("dot.hlo", DOT)
        words = ["--target", "h200", "--measure", "--device", "sim-cuda", "--json", "--seconds", "0", "--contractions"]
        [contraction] = json.loads(self.tokamak("explain", file, *words).stdout)["contractions"]
        self.assertEqual(contraction["flops"], 2 * 128**3)
        candidates = contraction["candidates"]
        self.assertEqual([c["chosen"] for c in candidates], [True] + [False] * (len(candidates) - 1))
        self.assertGreater(len(candidates), 2)
        for candidate in candidates:
            self.assertTrue(candidate.get("not_measured") or candidate["measured_us"] > 0, candidate)

    def test_explain_measures_on_a_gpu(self):
        if "sim-cuda" not in self.tokamak("run", self.write("ok.hlo", DOUBLE.replace("TYPE", "f32[3]")), "--backend", "none", expect=None).stderr:
            self.skipTest("no simulated GPU in this build")
        words = ["--target", "h200", "--measure", "--device", "sim-cuda", "--json", "--seconds", "0"]
        for name, text in (("horizontal.hlo", HORIZONTAL), ("steps.hlo", STEPS)):
            explained = json.loads(self.tokamak("explain", self.write(name, text), *words).stdout)["kernels"]
            self.assertTrue(all(k["measured_us"] > 0 for k in explained if k["generator"] != "host"), explained)

    def test_explain_a_rule(self):
        self.assertIn("an unrolled python loop", self.tokamak("explain", "lint.unrolled-loop").stdout.lower())
        rejected = self.tokamak("explain", "xla.expensve-op", expect=2)
        self.assertIn("'xla.expensve-op' is neither a file nor a rule, pass or error; did you mean 'xla.expensive-op'?", rejected.stderr)
        self.assertNotIn("did you mean", self.tokamak("explain", "nonsense", expect=2).stderr)

    def test_explain_a_pass_or_an_error_code(self):
        self.assertIn("a pass: `tokamak opt FILE --passes=cse` runs it", self.tokamak("explain", "cse").stdout)
        described = self.tokamak("explain", "TK6007").stdout
        self.assertIn("TK6007: The program has inputs, but neither --inputs nor --seed is given.", described)
        self.assertIn("Fix: Use `--seed 1` for random inputs", described)
        self.assertIn("Exit code 2", described)

    def test_lints_add_up_to_the_program_at_most(self):
        # One line with chains of 12, 11 and 10 steps, read from stored concatenations.
        lines = [f"  w{i} = f32[256,256] parameter({i})" for i in range(13)]
        at = 'metadata={op_name="jit(f)/OP" source_file="model.py" source_line=LINE}'
        last = "w0"
        for i in range(1, 13):
            metadata = at.replace("LINE", "7")
            lines.append(f"  d{i} = f32[256,256] dot({last}, w{i}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, {metadata}")
            lines.append(f"  t{i} = f32[256,256] tanh(d{i}), {metadata if i > 1 else at.replace('LINE', '8')}")
            last = f"t{i}"
            if i > 2:
                lines.append(f"  s{i} = f32[256,256] sine(t{i}), {metadata}")
                last = f"s{i}"
        lines.append(f"  c = f32[512,256] concatenate({last}, w3), dimensions={{0}}, {at.replace('LINE', '7')}")
        lines.append("  a = f32[512,256] sort(c), dimensions={0}, to_apply=less")
        lines.append("  b = f32[512,256] sort(c), dimensions={1}, to_apply=less")
        lines.append("  ROOT r = (f32[512,256], f32[512,256]) tuple(a, b)")
        less = "less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = pred[] compare(a, b), direction=LT\n}\n"
        path = self.write("m.hlo", "HloModule m\n" + less + "ENTRY main {\n" + "\n".join(lines) + "\n}\n")
        for target in ("host", "h200"):
            said = json.loads(self.tokamak("lint", path, "--json", "--target", target).stdout)
            rules = [lint["rule"] for lint in said["lints"]]
            self.assertIn("lint.unrolled-loop", rules)
            named = [line["text"] for lint in said["lints"] if lint["rule"] == "lint.unrolled-loop" for line in lint["lines"]]
            self.assertEqual(len(named), len(set(named)))
            explained = json.loads(self.tokamak("explain", path, "--json", "--no-compare", "--target", target).stdout)
            self.assertLessEqual(sum(lint["us"] for lint in explained["lints"]), explained["fused"]["predicted_us"] * (1 + 1e-9))
            self.assertAlmostEqual(said["call_us"], explained["fused"]["predicted_us"])

    def test_explain_beside(self):
        file = self.write("horizontal.hlo", HORIZONTAL)
        plain = self.tokamak("run", file, "--seed", "1")
        explained = self.tokamak("run", file, "--seed", "1", "--explain_fusion_decisions")
        self.assertEqual(plain.stdout, explained.stdout)
        for part in ("bytes moved", "by fusion.search", "train.py:3"):
            self.assertIn(part, explained.stderr)
        self.assertIn("bytes moved", self.tokamak("opt", file, "--explain-fusion-decisions").stderr)
        self.assertIn("bytes moved", self.tokamak("run", file, "--seed", "1", "--backend", "sim", TOKAMAK_DEBUG="explain").stderr)

    def test_explain_diff(self):
        a, b = self.write("horizontal.hlo", HORIZONTAL), self.write("steps.hlo", STEPS)
        explained = json.loads(self.tokamak("explain", "--diff", a, a, "--json").stdout)
        self.assertEqual((explained["in_both"], explained["a"]["only"], explained["b"]["only"]), (2, [], []))
        text = self.tokamak("explain", "--diff", a, b).stdout
        self.assertIn(f"only in {b}", text)
        for words, part in (((a, "--diff", a, b), "leave out FILE"), (("--diff", "none", "rules"), "FILE is missing"), ((), "FILE is required")):
            self.assertIn(part, self.tokamak("explain", *words, expect=2).stderr)

    def test_cost_estimates(self):
        """Every generator's kernels have a cost estimate that is the sum of its terms, and a larger kernel costs more."""
        programs = {
            "loop": ("f32[@,64]", "f32[@,64] exponential(x)"),
            "rows": ("f32[@,64]", "f32[@] reduce(x, zero), dimensions={1}, to_apply=sum"),
            "columns": ("f32[@,64]", "f32[64] reduce(x, zero), dimensions={0}, to_apply=sum"),
            "contract": ("f32[@,64]", "f32[@,@] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
            "scatter": ("f32[@,64]", "f32[@,64] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, "
                                     "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum"),
        }
        for generator, (shape, root) in programs.items():
            costs = []
            for size in ("128", "4096"):
                text = ESTIMATED.replace("SHAPE", shape).replace("VALUE", root).replace("@", size)
                explained = json.loads(self.tokamak("explain", self.write("estimated.hlo", text), "--json").stdout)
                kernels = [kernel for kernel in explained["kernels"] if kernel["generator"] == generator]
                self.assertTrue(kernels, (generator, explained["kernels"]))
                for kernel in kernels:
                    estimate = kernel["cost"]
                    self.assertGreaterEqual(kernel["predicted_us"] * 1.000001,
                                            estimate["launch"] + max(estimate["memory"], estimate["compute"]))
                    self.assertIn(estimate["binding"], ("launch", "memory", "compute"))
                costs.append(sum(kernel["predicted_us"] for kernel in kernels))
            self.assertGreaterEqual(costs[1], costs[0], generator)
        self.assertIn("rates: ", self.tokamak("explain", self.write("estimated.hlo", text)).stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
