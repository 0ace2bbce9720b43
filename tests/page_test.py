#!/usr/bin/env python3
"""`tokamak explain --html`: a page holds the data of `explain --json`, is consistent in itself, and needs no other file.

    tests/page_test.py build/bin/tokamak
"""
import html.parser
import json
import re
import resource
import shutil
import subprocess
import sys
import unittest
from collections import Counter
from pathlib import Path

from cli_case import CliCase, DOUBLE, STEPS

ROOT = Path(__file__).resolve().parent.parent
ADDED = {"program", "graph", "memory", "forms", "sources", "codes", "resources", "alternatives", "profile"}  # what a page has besides the JSON
PROGRAMS = [ROOT / "examples" / f"{name}.mlir" for name in ("attention", "adam", "cartpole", "heat", "layernorm_dropout")]
PROGRAMS += [ROOT / "tests" / "explain" / f"{name}.hlo" for name in ("phases", "lint_loop", "lint_concat")]
LAYER = """  r@ = f32[64] reduce(x@, zero), dimensions={1}, to_apply=sum, metadata={op_name="jit(f)/layer_@/sum" source_file="m.py" source_line=3}
  b@ = f32[64,256] broadcast(r@), dimensions={0}, metadata={op_name="jit(f)/layer_@/sum" source_file="m.py" source_line=3}
  c@ = f32[64,256] subtract(x@, b@), metadata={op_name="jit(f)/layer_@/sub" source_file="m.py" source_line=4}
  w@ = f32[256,256] parameter(#)
  d@ = f32[64,256] dot(c@, w@), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/layer_@/dot" source_file="m.py" source_line=5}
"""
SUM = "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\n"


def seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def layers(count, sines):
    """A network of equal layers with 5 + `sines` instructions each."""
    lines = ["HloModule layers\n" + SUM + "ENTRY main {\n  x0 = f32[64,256] parameter(0)\n  zero = f32[] constant(0)\n"]
    for layer in range(count):
        lines.append(LAYER.replace("@", str(layer)).replace("#", str(layer + 1)))
        last = f"d{layer}"
        for at in range(sines):
            name = f"x{layer + 1}" if at == sines - 1 else f"s{layer}_{at}"
            lines.append(f'  {name} = f32[64,256] sine({last}), metadata={{op_name="jit(f)/layer_{layer}/sin" source_file="m.py" source_line=6}}\n')
            last = name
    return "".join(lines) + f"  ROOT root = f32[64,256] negate(x{count})\n}}\n"


class Page(html.parser.HTMLParser):
    """The elements of a page, and the text of its scripts."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.scripts, self.title, self.inside = Counter(), [], "", None
        self.addresses, self.policy = [], ""
        self.feed(text)
        self.close()
        self.data = json.loads(self.scripts[0])

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.inside = tag
        attributes = dict(attrs)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "action", "data", "srcset")]
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside == "script":
            self.scripts[-1] += data
        elif self.inside == "h1":
            self.title += data


def nodes_of(node):
    return [node, *(below for child in node["children"] for below in nodes_of(child))]


class PageTest(CliCase):
    def page(self, file, *words, target="h200", code=False):
        path = self.path("page.html")
        # Compiling the code of kernels takes most of the time of a page: only some tests look at it.
        self.tokamak("explain", str(file), "--no-compare", "--target", target, *words, "--html", path, *([] if code else ["--no-code"]))
        return Page(Path(path).read_text(encoding="utf-8"))

    def views(self):
        """What the scripts of the last page derive from its data."""
        node = shutil.which("node")
        if node is None:
            self.skipTest("no node here")
        script = str(Path(__file__).with_name("page_views.js"))
        done = subprocess.run([node, script, self.path("page.html")], capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_a_page_holds_the_report(self):
        for target in ("host", "h200"):
            for file in PROGRAMS:
                page = self.page(file, target=target).data
                report = json.loads(self.tokamak("explain", str(file), "--no-compare", "--target", target, "--json").stdout)
                for one in (page, report):
                    one["fused"].pop("planning_ms")
                self.assertEqual({name: part for name, part in page.items() if name not in ADDED}, report, file)

    def test_the_graph_is_that_of_the_steps(self):
        for target in ("host", "h200"):
            for file in PROGRAMS:
                data = self.page(file, target=target).data
                graph, kernels = data["graph"], data["kernels"]
                self.assertEqual(len(graph["steps"]), len(kernels))
                names = [instr["name"] for instr in graph["instrs"]]
                for number, (step, kernel) in enumerate(zip(graph["steps"], kernels)):
                    self.assertLessEqual(set(kernel["instrs"]), {names[i] for i in step["instrs"]} | {names[i] for i in step["made"]}, kernel)
                    self.assertEqual([graph["lines"][line] for line in step["lines"]], kernel["lines"])
                    for instr in step["instrs"]:
                        self.assertIn(number, graph["instrs"][instr]["steps"])
                for edge in graph["edges"]:
                    if edge["from"] is not None:
                        self.assertIn(edge["value"], graph["steps"][edge["from"]]["made"])
                self.assertTrue(any(edge["to"] is None for edge in graph["edges"]), "no results")

    def test_edges_have_the_bytes_that_steps_read(self):
        data = self.page(self.write("steps.hlo", STEPS)).data
        read = Counter()
        for edge in data["graph"]["edges"]:
            if edge["to"] is not None:
                read[edge["to"]] += edge["bytes"]
        for number, kernel in enumerate(data["kernels"]):
            if kernel["generator"] != "host":
                self.assertEqual(read[number], kernel["reads_bytes"], kernel)

    def test_live_ranges_fit_the_memory_plan(self):
        most_live = 0
        for target in ("host", "h200"):
            for file in PROGRAMS:
                data = self.page(file, target=target).data
                memory, graph = data["memory"], data["graph"]
                self.assertEqual(memory["arena_bytes"], data["temporary_bytes"])
                for step in range(len(data["kernels"])):
                    live = sorted((life["offset"], life["offset"] + life["bytes"]) for life in memory["lives"] if life["first"] < step < life["last"])
                    for before, after in zip(live, live[1:]):
                        self.assertLessEqual(before[1], after[0], (file, step))
                    most_live = max(most_live, len(live))
                for life in memory["lives"]:
                    self.assertLessEqual(life["first"], life["last"])
                    self.assertLessEqual(life["offset"] + life["bytes"], memory["arena_bytes"])
                names = {(life["name"], life["bytes"]): life for life in memory["lives"]}
                for edge in graph["edges"]:
                    life = names.get((graph["instrs"][edge["value"]]["name"], edge["bytes"]))
                    if life is not None and None not in (edge["from"], edge["to"]):
                        self.assertLessEqual(edge["to"], life["last"], (file, life))
        self.assertGreater(most_live, 1)

    def test_a_page_needs_no_other_file(self):
        page = self.page(ROOT / "examples" / "attention.mlir")
        self.assertEqual(page.addresses, [])
        self.assertIn("default-src 'none'", page.policy)
        text = Path(self.path("page.html")).read_text(encoding="utf-8")
        self.assertEqual(set(re.findall(r"https?://[^\s\"'`)]*", text)), {"http://www.w3.org/2000/svg"})
        loads = re.findall(r"@import|url\((?!#)|fetch\(|XMLHttpRequest|WebSocket|\bimport\(|\{\{", text)
        self.assertEqual(loads, [])
        self.assertTrue("Permission is hereby granted" in text)  # the licence of dagre travels with its code

    def test_names_cannot_break_a_page(self):
        evil = "</script><script>alert(1)</script><!--<b>&amp;"
        program = DOUBLE.replace("TYPE", "f32[4]").replace(
            "add(x, x)", f'add(x, x), metadata={{op_name="{evil}/add" source_file="{evil}.py" source_line=7}}')
        plain = self.page(self.write("plain.hlo", DOUBLE.replace("TYPE", "f32[4]")))
        page = self.page(self.write("evil.hlo", program))
        self.assertEqual(page.tags, plain.tags)
        self.assertEqual(page.data["graph"]["lines"][-1].split(":7")[0], evil + ".py")
        self.assertEqual(len(page.scripts), 3)
        self.assertEqual(page.title, "m")

    def test_sources_are_lines_around_those_of_the_program(self):
        for name in ("train.py", "secrets.txt"):
            self.write(name, "".join(f"{name} line {number}\n" for number in range(1, 101)))
        at = 'metadata={source_file="FILE" source_line=50}'
        program = "HloModule m\nENTRY main {\n  x = f32[4] parameter(0)\n" \
            f"  y = f32[4] negate(x), {at.replace('FILE', 'train.py')}\n  ROOT z = f32[4] sine(y), {at.replace('FILE', 'secrets.txt')}\n}}\n"
        sources = self.page(self.write("m.hlo", program)).data["sources"]
        self.assertNotIn("secrets.txt", sources)
        self.assertEqual(sources["train.py"], [[number, f"train.py line {number}"] for number in range(38, 63)])
        self.assertNotIn("secrets.txt line", Path(self.path("page.html")).read_text(encoding="utf-8"))

    def test_other_outputs_and_programs(self):
        file = self.write("m.hlo", DOUBLE.replace("TYPE", "f32[4]"))
        for words, says in ((["--json"], "--html excludes --json"), (["--dot"], "--html excludes --dot"), (["--kernel", "1"], "--html excludes --kernel"),
                            (["--target", "host,h200"], "a page shows one target")):
            self.assertIn(says, self.tokamak("explain", file, "--html", self.path("x.html"), *words, expect=2).stderr)
        self.assertFalse(Path(self.path("x.html")).exists())
        self.assertIn("TK6010", self.tokamak("explain", file, "--html", self.path("none/x.html"), expect=None).stderr)
        dynamic = self.write("d.hlo", "HloModule m\nENTRY main {\n  x = f32[<=4] parameter(0)\n  ROOT y = f32[<=4] negate(x)\n}\n")
        page = self.page(dynamic)
        self.assertIn("interpreted", page.data)

    def test_the_views_show_the_report(self):
        for file in PROGRAMS:
            data = self.page(file).data
            views = self.views()
            self.assertIn("ready", views)
            total = sum(kernel["predicted_us"] * (kernel["calls"] or 1) for kernel in data["kernels"])
            self.assertAlmostEqual(views["total_us"], total)
            self.assertAlmostEqual(total, data["fused"]["predicted_us"], delta=total * 1e-6)
            with_lines = sum(kernel["predicted_us"] * (kernel["calls"] or 1) for kernel in data["kernels"] if kernel["lines"])
            self.assertAlmostEqual(sum(views["line_us"].values()), with_lines, delta=total * 1e-6)
            self.assertEqual(views["unfused_leaves"], len(data["graph"]["instrs"]))
            self.assertEqual(views["details"], [len(data["kernels"]), *(len(data["graph"][part]) for part in ("instrs", "edges", "lines"))])
            for step, live in enumerate(views["curve"] or []):
                self.assertEqual(live, sum(life["bytes"] for life in data["memory"]["lives"] if life["first"] <= step <= life["last"]))

    def test_code_is_what_the_backends_make(self):
        for target, language, listing, word in (("host", "llvm", "assembly", r"^\s*ret"), ("h200", "cuda", "PTX", r"\.visible \.entry")):
            for file in (self.write("steps.hlo", STEPS), ROOT / "examples" / "softmax.mlir"):
                data = self.page(file, target=target, code=True).data
                codes, views = data["codes"], self.views()
                self.assertEqual(codes["listing"], listing)
                for number, kernel in enumerate(data["kernels"]):
                    shown = {one["name"]: one for one in views["code"][number]}
                    if kernel["generator"] == "host":
                        self.assertTrue(all("text" not in one and "no kernel" in one["why"] for one in shown.values()), shown)
                        continue
                    words = ["--target", target, "--no-compare", "--kernel", str(number + 1), "--json"]
                    [kernel] = json.loads(self.tokamak("explain", str(file), *words).stdout)["kernels"]
                    entry = codes["steps"][str(number)]
                    self.assertEqual(entry["code"], kernel[language])
                    self.assertEqual((shown["kernel IR"]["text"], shown[codes["language"]]["text"]), (kernel["form"], kernel[language]))
                    if codes["compiler"]:
                        self.assertRegex(entry["listing"], re.compile(word, re.M))
                        self.assertEqual(shown[listing]["text"], entry["listing"])  # colours lose no character
                        self.assertGreater(entry["compile_ms"], 0)
                    else:
                        self.assertEqual(target, "h200")
                        self.assertIn("NVRTC", shown[listing]["why"])
                # The lines of code that load or store an array name the line that made it.
                if "steps.hlo" in str(file):
                    self.assertIn("model.py:12", " ".join(views["code"][0][0]["lines"] + views["code"][0][1]["lines"]))

    def test_pages_without_code_say_so(self):
        data = self.page(self.write("steps.hlo", STEPS)).data
        self.assertEqual((data["codes"]["steps"], data["codes"]["left_out"]["kernels"], data["profile"]["page"]["ms"]), ({}, 2, 0))
        texts = self.views()["code"][0]
        self.assertIn("text", texts[0])
        self.assertEqual({one["why"] for one in texts[1:]}, {"the page was made without code (--no-code)"})

    def test_the_profile_has_the_times_of_the_compilation(self):
        for target in ("host", "h200"):
            file = ROOT / "examples" / "attention.mlir"
            data, views = self.page(file, target=target).data, self.views()
            profile = data["profile"]
            stages = [child["name"] for child in profile["children"]]
            self.assertEqual(stages, ["read", "verify", "passes", "describe", "planning"])
            self.assertAlmostEqual(profile["ms"], sum(child["ms"] for child in profile["children"]))
            planning = profile["children"][-1]
            self.assertAlmostEqual(planning["ms"], data["fused"]["planning_ms"])
            plans = [node for node in nodes_of(profile) if node["name"].startswith("plan ")]
            self.assertEqual([plan["name"] for plan in plans], ["plan main"])
            self.assertRegex(plans[0]["note"], r"^\d+ moves, \d+ kernels built for their costs$")
            for node in nodes_of(profile):
                self.assertGreaterEqual(node["ms"], 0)
                below = sum(child["ms"] for child in node["children"])
                # A plan counts the time of its thread, by another clock.
                self.assertLessEqual(below, node["ms"] * 1.05 + 0.5, node["name"])
            runs = [node for node in nodes_of(profile) if node.get("pass")]
            listed = self.tokamak("opt", str(file), "--target", target, "--time-passes").stdout
            for node in runs:
                self.assertIn(node["name"], listed + "hoist-constants flatten-entry")
            self.assertEqual(sum(one["runs"] for one in views["passes"]), len(runs))
            self.assertEqual(len(views["profile"]), len(nodes_of(profile)))
            for bar in views["profile"]:
                self.assertLessEqual(bar["start"] + bar["ms"], profile["ms"] * 1.05 + 1, bar)

    def test_resources_are_those_of_the_machine(self):
        n = 512
        dot = f"HloModule m\nENTRY main {{\n  x = f32[{n},{n}] parameter(0)\n  y = f32[{n},{n}] parameter(1)\n" \
            f"  d = f32[{n},{n}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n  ROOT e = f32[{n},{n}] exponential(d)\n}}\n"
        machine = json.loads((ROOT / "machines" / "h200.json").read_text())
        for target in ("host", "h200"):
            data = self.page(self.write("dot.hlo", dot), target=target).data
            resources, views = data["resources"], self.views()
            own = [(kernel, resource) for kernel, resource in zip(data["kernels"], resources["steps"]) if resource and kernel["generator"] != "library"]
            self.assertGreaterEqual(sum(resource["ops"] for resource in resources["steps"] if resource), n * n)
            if any(kernel["generator"] == "contract" for kernel, _ in own):
                self.assertGreaterEqual(sum(resource["ops"] for _, resource in own), 2 * n ** 3)
            most = max(roof["ops_ns"] for roof in resources["compute"])
            for at in views["roofline"]:
                self.assertLess(at["rate"], most * 1.05, at)
            for kernel, resource in own:
                if target == "host":
                    self.assertNotIn("occupancy", resource)
                    continue
                occupancy = resource["occupancy"]
                self.assertLessEqual(occupancy["blocks"] * resource["threads"], machine["threads"])
                self.assertAlmostEqual(occupancy["threads"], occupancy["blocks"] * resource["threads"] / machine["threads"])
                fits = {"registers": machine["registers"] / (kernel["registers"] * resource["threads"]), "threads": machine["threads"] / resource["threads"],
                        "shared memory": machine["shared_bytes"] / max(kernel["shared_bytes"], 1), "blocks": 32}
                self.assertEqual(occupancy["blocks"], max(1, min(int(value) for value in fits.values())), fits)
                self.assertLess(fits[occupancy["limit"]], occupancy["blocks"] + 1)

    def test_alternatives_are_schedules_of_the_steps(self):
        data = self.page(ROOT / "examples" / "attention.mlir", "--contractions").data
        self.assertTrue(data["alternatives"])
        for number, schedules in data["alternatives"].items():
            step = data["kernels"][int(number)]
            chosen = [one for one in schedules if one["chosen"]]
            for one in chosen:
                self.assertEqual(one["schedule"], step["schedule"])
                self.assertAlmostEqual(one["predicted_us"], step["predicted_us"])
            self.assertEqual(len({one["schedule"] for one in schedules}), len(schedules))
        views = self.views()
        self.assertEqual([bool(count) for count in views["schedules"]].count(True) >= len(data["alternatives"]), True)
        self.assertEqual(len(views["moves"]), len(data["graph"]["edges"]))

    def test_steps_are_grouped_by_what_the_source_says(self):
        data = self.page(self.write("layers.hlo", layers(6, 3))).data
        views = self.views()
        for by, found in views["groupings"].items():
            self.assertEqual(sorted(found), list(range(len(data["kernels"]))), by)
        text = json.dumps(views["labels"])
        self.assertIn("m.py", text)
        self.assertIn("layer_1", text)

    def test_tabs_control_panels(self):
        self.page(self.write("steps.hlo", STEPS))
        views = self.views()
        tabs = views["tabs"]
        self.assertEqual([tab["text"] for tab in tabs], ["Graph", "Timeline", "Kernels", "Code", "Source", "Decisions", "Missed chances", "Compile time"])
        for tab in tabs:
            panel = tab["panel"]
            self.assertEqual((tab["role"], panel["role"], panel["data-view"]), ("tab", "tabpanel", tab["data-view"]))
            self.assertEqual((panel["id"], panel["aria-label"], tab["aria-selected"]), (tab["aria-controls"], tab["text"], "true"))
            self.assertEqual(tab["others"], ["aside"])
            self.assertGreater(tab["length"], 0)

    def test_steps_of_whole_loops_have_the_lines_of_their_bodies(self):
        data = self.page(ROOT / "examples" / "cartpole.mlir").data
        [step] = data["graph"]["steps"]
        ops = {data["graph"]["instrs"][instr]["op"] for instr in step["instrs"]}
        self.assertLessEqual({"while", "select", "multiply"}, ops)
        lines = self.views()["line_us"]
        self.assertGreater(len(lines), 5)
        self.assertAlmostEqual(sum(lines.values()), data["fused"]["predicted_us"], delta=1e-6 * data["fused"]["predicted_us"])

    def test_colours_are_readable(self):
        style = (ROOT / "src" / "driver" / "report" / "html" / "style.css").read_text()
        blocks = [re.findall(r"--(\w+): #(\w{6})", block) for block in re.findall(r":root[^{]*\{([^}]*)\}", style) if "--back" in block]
        self.assertEqual(len(blocks), 3)  # light, dark as the system is, dark by the button
        self.assertEqual(blocks[1], blocks[2])

        def light(colour):
            parts = [int(colour[at:at + 2], 16) / 255 for at in (0, 2, 4)]
            linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
            return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

        for block in blocks:
            colours = dict(block, white="ffffff")
            on = [(text, back) for text in ("text", "quiet", "link", "word", "type", "quoted", "digits", "gain", "loss") for back in ("back", "panel")]
            on += [("white", back) for back in ("forward", "backward", "update")]
            for text, back in on:
                low, high = sorted((light(colours[text]), light(colours[back])))
                self.assertGreaterEqual((high + 0.05) / (low + 0.05), 4.5, (text, back, colours))  # WCAG 2, level AA

    def test_large_programs_have_small_pages(self):
        # 5,000 instructions. Equal layers are one group. All details of all steps, instructions and arrays take seconds.
        data = self.page(self.write("layers.hlo", layers(100, 45))).data
        self.assertGreater(len(data["graph"]["instrs"]), 4500)
        self.assertLess(Path(self.path("page.html")).stat().st_size, 8 << 20)
        start = seconds_of_children()
        views = self.views()
        self.assertLess(seconds_of_children() - start, 30)
        self.assertLess(len(views["fused"]["children"]), 20)
        self.assertTrue(any(node["kind"] == "repeat" and len(node["children"]) > 90 for node in views["fused"]["children"]), views["fused"]["children"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
