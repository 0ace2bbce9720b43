#!/usr/bin/env python3
"""The files of `tokamak explain` besides the report: timelines (--trace), pages of two plans (--diff --html), pages of dumps of
XLA (--xla-dump --html).

    tests/explain_files_test.py build/bin/tokamak
"""
import html.parser
import json
import re
import sys
import unittest
from collections import Counter, defaultdict
from pathlib import Path

from cli_case import CliCase, DOUBLE

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = {name: str(ROOT / "examples" / f"{name}.mlir") for name in ("attention", "adam", "cartpole", "heat", "layernorm_dropout")}
DUMPS = ROOT / "tests" / "fusion" / "dumps"
DYNAMIC = "HloModule m\nENTRY main {\n  x = f32[<=4] parameter(0)\n  ROOT y = f32[<=4] negate(x)\n}\n"
EVIL = "</script><script>alert(1)</script>"


class Scripts(html.parser.HTMLParser):
    """The title of a page, its data, and the addresses that it names."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.inside, self.title, self.data, self.scripts, self.addresses = "", "", "", 0, []
        self.feed(text)
        self.close()
        self.data = json.loads(self.data)

    def handle_starttag(self, tag, attrs):
        self.inside = "data" if ("id", "report") in attrs else tag
        self.scripts += tag == "script"
        self.addresses += [value for name, value in attrs if name in ("src", "href", "action", "srcset")]

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, data):
        if self.inside == "data":
            self.data += data
        elif self.inside == "h1":
            self.title += data


class FilesCase(CliCase):
    def json(self, *words):
        return json.loads(self.tokamak("explain", *words, "--json").stdout)

    def page(self, *words, scripts=2):
        path = self.path("page.html")
        self.assertIn(path, self.tokamak("explain", *words, "--html", path).stdout)
        text = Path(path).read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"@import|url\((?!#)|fetch\(|XMLHttpRequest|WebSocket|\bimport\(|\{\{", text), [])
        self.assertIn("default-src 'none'", text)
        page = Scripts(text)
        self.assertEqual((page.addresses, page.scripts), ([], scripts))
        return page


class TraceTest(FilesCase):
    def trace(self, *words):
        path = self.path("trace.json")
        self.tokamak("explain", *words, "--no-compare", "--trace", path)
        return json.loads(Path(path).read_text(encoding="utf-8"))

    def check_format(self, trace):
        """Every event has the members that its phase needs; the slices of a track follow each other."""
        self.assertEqual(trace["displayTimeUnit"], "ns")
        named, tracks = set(), defaultdict(list)
        for event in trace["traceEvents"]:
            self.assertIsInstance(event["pid"], int)
            self.assertIsInstance(event["tid"], int)
            self.assertIsInstance(event["name"], str)
            if event["ph"] == "M":
                self.assertIn(event["name"], ("process_name", "thread_name"))
                self.assertIsInstance(event["args"]["name"], str)
                named.add((event["pid"], event["tid"]))
                continue
            self.assertGreaterEqual(event["ts"], 0)
            if event["ph"] == "C":
                self.assertTrue(all(isinstance(value, int) and value >= 0 for value in event["args"].values()), event)
                continue
            self.assertEqual(event["ph"], "X")
            self.assertGreaterEqual(event["dur"], 0)
            tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        self.assertLessEqual(set(tracks), named)
        for slices in tracks.values():
            for (_, end), (start, _) in zip(slices, slices[1:]):
                self.assertLessEqual(end, start + 1e-6 * max(1, end))
        return {event["args"]["name"]: event["pid"] for event in trace["traceEvents"] if event["name"] == "process_name"}

    def slices(self, trace, pid):
        return [event for event in trace["traceEvents"] if event["ph"] == "X" and event["pid"] == pid]

    def test_the_steps_and_their_times(self):
        for target in ("host", "h200"):
            for file in EXAMPLES.values():
                report = self.json(file, "--no-compare", "--target", target)
                trace = self.trace(file, "--target", target)
                processes = self.check_format(trace)
                self.assertEqual(set(processes), {"predicted", "compilation"})
                steps = self.slices(trace, processes["predicted"])
                self.assertEqual([step["name"] for step in steps], [kernel["name"] for kernel in report["kernels"]])
                total = report["fused"]["predicted_us"]
                self.assertAlmostEqual(sum(step["dur"] for step in steps), total, delta=total * 1e-6)
                for step, kernel in zip(steps, report["kernels"]):
                    self.assertEqual(step["args"]["runs"], "data-dependent" if kernel["calls"] is None else kernel["calls"])
                    self.assertEqual(step["args"]["reads"], kernel["reads_bytes"])

    def test_memory_is_that_of_the_page(self):
        file = EXAMPLES["attention"]
        trace = self.trace(file, "--target", "h200")
        memory = self.page(file, "--no-compare", "--target", "h200", scripts=3).data["memory"]
        values = [event["args"]["bytes"] for event in trace["traceEvents"] if event["ph"] == "C"]
        steps = range(max(life["last"] for life in memory["lives"]) + 1)
        live = [sum(life["bytes"] for life in memory["lives"] if life["first"] <= step <= life["last"]) for step in steps]
        self.assertEqual(max(values), max(live))
        self.assertEqual(values[-1], 0)

    def test_measured_times_and_passes(self):
        trace = self.trace(EXAMPLES["layernorm_dropout"], "--measure", "--seconds", "0.001")
        processes = self.check_format(trace)
        self.assertEqual(set(processes), {"predicted", "measured", "compilation"})
        measured, predicted = (self.slices(trace, processes[name]) for name in ("measured", "predicted"))
        self.assertEqual([step["name"] for step in measured], [step["name"] for step in predicted])
        self.assertGreater(sum(step["dur"] for step in measured), 0)
        stages = {event["name"]: event for event in self.slices(trace, processes["compilation"]) if event["cat"] == "stage"}
        self.assertEqual(list(stages), ["verify", "passes", "describe", "planning"])
        passes = [event for event in self.slices(trace, processes["compilation"]) if event["cat"] == "pass"]
        self.assertIn("simplify", {event["name"] for event in passes})
        end = stages["planning"]["ts"] + stages["planning"]["dur"]
        self.assertLessEqual(max(event["ts"] + event["dur"] for event in passes), end + 1)

    def test_what_has_no_timeline(self):
        trace = self.trace(self.write("dynamic.hlo", DYNAMIC))
        self.assertEqual([event for event in trace["traceEvents"] if event["ph"] == "X" and event["cat"] == "step"], [])
        self.assertIn("interpreted", trace["otherData"])
        file = self.write("m.hlo", DOUBLE.replace("TYPE", "f32[4]"))
        self.assertIn("TK6010", self.tokamak("explain", file, "--trace", self.path("none/x.json"), expect=None).stderr)
        self.assertIn("--trace excludes --diff", self.tokamak("explain", file, "--diff", "none", "rules", "--trace", "x", expect=2).stderr)
        self.assertIn("--trace excludes --xla-dump", self.tokamak("explain", file, "--xla-dump", "--trace", "x", expect=2).stderr)
        two = self.write("two.hlo", "\n// -----\n".join([DOUBLE.replace("TYPE", "f32[4]")] * 2))
        self.tokamak("explain", two, "--trace", self.path("t.json"))
        self.assertTrue(Path(self.path("t.2.json")).exists())


class ProgramPagesTest(FilesCase):
    def test_a_program_that_runs_has_a_page(self):
        file = self.write("m.hlo", DOUBLE.replace("TYPE", "f32[4]"))
        folder = self.path("out")
        for _ in range(2):
            self.tokamak("run", file, "--seed", "1", TOKAMAK_EXPLAIN=folder)
        names = sorted(path.name for path in Path(folder).iterdir())
        kinds = ("after_optimizations.txt", "before_optimizations.txt", "explain.json", "html")
        self.assertEqual(names, ["index.html"] + [f"module_000{number}.m.{kind}" for number in range(2) for kind in kinds])
        rows = Scripts((Path(folder) / "index.html").read_text()).data["programs"]
        self.assertEqual([(row["name"], row["files"]) for row in rows], [("m", "module_0000.m"), ("m", "module_0001.m")])
        self.assertEqual(Scripts((Path(folder) / "module_0001.m.html").read_text()).data["program"], "m")

    def test_names_cannot_leave_the_folder(self):
        file = self.write("m.hlo", DOUBLE.replace("TYPE", "f32[4]").replace("HloModule m", "HloModule ..%2f.x"))
        self.tokamak("run", file, "--seed", "1", TOKAMAK_EXPLAIN=self.path("a/out"), expect=None)
        outside = [path for path in Path(self.path("")).rglob("*.html") if path.parent.name != "out"]
        self.assertEqual(outside, [])


class DiffPageTest(FilesCase):
    def test_both_plans(self):
        for name, modes in (("attention", ("none", "search")), ("layernorm_dropout", ("rules", "search")), ("cartpole", ("rules", "search"))):
            words = (EXAMPLES[name], "--target", "h200", "--diff", *modes)
            diff, page = self.json(*words), self.page(*words)
            self.assertEqual(page.title, " and ".join(modes))
            for side in "ab":
                own, other = page.data[side], diff[side]
                for one in (own, other):
                    one["totals"].pop("planning_ms")
                self.assertEqual((own["name"], own["totals"], own["only"]), (other["name"], other["totals"], other["only"]))
                self.check_sums(page.data, side)
            self.assertEqual(len(page.data["pairs"]), diff["in_both"])

    def check_sums(self, data, side):
        """The pairs and what is only on this side are all of its steps; the lines have all of its time."""
        kernels = data[side]["report"]["kernels"]
        paired = [pair["ab".index(side)] for pair in data["pairs"]]
        self.assertEqual(len(set(paired)), len(paired))
        only = Counter()
        for number, kernel in enumerate(kernels):
            if number not in paired:
                only[kernel["generator"]] += 1
        expected = Counter()
        for step in data[side]["only"]:
            expected[step["generator"]] += step["count"]
        self.assertEqual(only, expected)
        total = data[side]["totals"]["predicted_us"]
        with_lines = sum(kernel["predicted_us"] * (kernel["calls"] or 1) for kernel in kernels if kernel["lines"])
        self.assertAlmostEqual(sum(line[side] for line in data["lines"]), with_lines, delta=total * 1e-6)

    def test_decisions_are_those_that_differ(self):
        decisions = self.page(EXAMPLES["layernorm_dropout"], "--target", "h200", "--diff", "rules", "search").data["decisions"]
        self.assertTrue(decisions)
        for row in decisions:
            self.assertNotEqual(row["a"], row["b"], row)
        self.assertTrue(any(row["a"] is None for row in decisions) and any(row["b"] is None for row in decisions))

    def test_equal_programs_do_not_differ(self):
        data = self.page("--target", "h200", "--diff", EXAMPLES["adam"], EXAMPLES["adam"]).data
        self.assertEqual((data["decisions"], data["a"]["only"], data["b"]["only"], data["b_minus_a_us"]), ([], [], [], 0))
        self.assertTrue(all(line["a"] == line["b"] for line in data["lines"]))

    def test_names_and_faults(self):
        file = self.write("m.hlo", DOUBLE.replace("TYPE", "f32[4]").replace("add(x, x)", f'add(x, x), metadata={{op_name="{EVIL}" source_file="{EVIL}.py" source_line=7}}'))
        self.assertEqual(self.page("--diff", file, file).data["lines"][0]["line"], f"{EVIL}.py:7")
        self.assertIn("--html excludes --json", self.tokamak("explain", "--diff", file, file, "--json", "--html", self.path("x"), expect=2).stderr)
        self.assertIn("TK6010", self.tokamak("explain", "--diff", file, file, "--html", self.path("none/x.html"), expect=None).stderr)
        self.assertIn("interpreted", self.tokamak("explain", "--diff", file, self.write("d.hlo", DYNAMIC), "--html", self.path("x"), expect=None).stderr)


class XlaPageTest(FilesCase):
    def dump(self, file, *words):
        return self.page("--xla-dump", file, "--target", "h200", *words).data

    def test_both_plans(self):
        for file in sorted(DUMPS.glob("*.txt")):
            data = self.dump(file)
            report = self.json("--as-given", file, "--target", "h200")
            kernels, ours = data["given"]["kernels"], data["tokamak"]["kernels"]
            self.assertEqual([kernel["name"] for kernel in kernels], [kernel["name"] for kernel in report["given"]["kernels"]])
            self.assertEqual(len(ours), report["tokamak"]["total"])
            self.assertEqual([one["cause"] for one in data["given"]["boundaries"]], [one["cause"] for one in report["given"]["boundaries"]])
            for step in ours:
                for kernel, count in step["given"]:
                    self.assertLess(kernel, len(kernels))
                    self.assertGreater(count, 0)
                    if "while" not in step["instrs"][0]:  # a loop that is one kernel also has the instructions of its body
                        self.assertLessEqual(count, len(step["instrs"]))
            # Each step does work of some kernel of the dump, copies and the like aside.
            self.assertTrue(all(step["given"] for step in ours if step["generator"] not in ("copy", "host")), file)

    def test_boundaries_have_both_costs_and_what_we_do(self):
        data = self.dump(DUMPS / "bert_layer.txt")
        kernels, boundaries = data["given"]["kernels"], data["given"]["boundaries"]
        for boundary in boundaries:
            self.assertEqual(kernels[boundary["producer"]]["name"], boundary["from"])
            if boundary["consumer"] is None:
                self.assertIsNone(boundary["ours"])
                continue
            self.assertEqual(kernels[boundary["consumer"]]["name"], boundary["to"])
            self.assertAlmostEqual(boundary["apart_us"], sum(kernels[boundary[end]]["predicted_us"] for end in ("producer", "consumer")))
            self.assertGreater(boundary["fused_us"], 0)
            self.assertIn(boundary["ours"], ("fused", "stored"))
            if boundary["rule"]:
                self.assertIn(boundary["rule"], data["rules"])
        steps_of = defaultdict(set)
        for number, step in enumerate(data["tokamak"]["kernels"]):
            for kernel, _ in step["given"]:
                steps_of[kernel].add(number)
        for boundary in boundaries:
            if boundary["consumer"] is not None:
                together = steps_of[boundary["producer"]] & steps_of[boundary["consumer"]]
                self.assertEqual(boundary["ours"], "fused" if together else "stored", boundary)
        self.assertEqual({boundary["ours"] for boundary in boundaries}, {"fused", "stored", None})

    def test_two_kernels_cost_more_than_one(self):
        # XLA keeps these apart; one kernel saves the launch, and the array between them.
        program = """HloModule m, is_scheduled=true
a { p = f32[1024,1024] parameter(0)  ROOT n = f32[1024,1024] negate(p) }
b { p = f32[1024,1024] parameter(0)  ROOT t = f32[1024,1024] tanh(p) }
ENTRY main {
  x = f32[1024,1024] parameter(0)
  f = f32[1024,1024] fusion(x), kind=kLoop, calls=a
  ROOT g = f32[1024,1024] fusion(f), kind=kLoop, calls=b
}
"""
        data = self.dump(self.write("m.txt", program))
        between = [boundary for boundary in data["given"]["boundaries"] if boundary["to"] == "g"]
        self.assertEqual([(boundary["ours"], boundary["cause"]) for boundary in between], [("fused", "none of the paper's rules")])
        self.assertLess(between[0]["fused_us"], 0.8 * between[0]["apart_us"])
        self.assertEqual([step["given"] for step in data["tokamak"]["kernels"]], [[[0, 1], [1, 1]]])

    def test_marks_of_others_do_no_harm(self):
        for other in ("dumped_kernel=", "dumped_kernel=99999999999999999999999", "dumped_kernel=7", "dumped_kernel=x"):
            text = DOUBLE.replace("TYPE", "f32[4]").replace("add(x, x)", f"add(x, x), metadata={{{other}}}")
            self.tokamak("explain", "--xla-dump", self.write("m.hlo", text), "--html", self.path("x.html"), expect=None)

    def test_interpreted_programs_and_names(self):
        text = DOUBLE.replace("TYPE", "f32[4]").replace("add(x, x)", f'add(x, x), metadata={{op_name="{EVIL}" source_file="{EVIL}.py" source_line=7}}')
        data = self.dump(self.write("evil.hlo", text))
        self.assertEqual(data["given"]["kernels"][0]["lines"], [f"{EVIL}.py:7"])
        self.assertIn("--html excludes --json", self.tokamak("explain", "--xla-dump", self.write("m.hlo", text), "--json", "--html", "x", expect=2).stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
