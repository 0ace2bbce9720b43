#!/usr/bin/env python3
"""The pages of `tokamak explain --html` in a real browser: every view of several programs is clicked through, and nothing may be
written to the console as an error. Screenshots go into a folder.

    tests/browser_test.py [build/bin/tokamak] [--shots build/screenshots] [TEST ...]
"""
import argparse
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from browser_case import Keys, started

ROOT = Path(__file__).resolve().parent.parent


def parsed():
    """The options of this script, and the words that are unittest's."""
    parser = argparse.ArgumentParser(description="Clicks through the pages of a compile report.", epilog="Other words go to unittest.")
    parser.add_argument("tokamak", nargs="?", default="build/bin/tokamak", type=Path)
    parser.add_argument("--shots", default=ROOT / "build" / "screenshots", type=Path, metavar="DIR", help="the folder of the screenshots")
    return parser.parse_known_args()


OPTIONS, WORDS = parsed()
TOKAMAK, SHOTS = OPTIONS.tokamak.resolve(), OPTIONS.shots
EXAMPLES = {name: ROOT / "examples" / f"{name}.mlir" for name in ("attention", "adam", "cartpole", "layernorm_dropout")}
BERT_LAYERS = 9  # 5,000 instructions
LARGE = 5000
# Bounds of what a user waits for. The best of three tries counts: the test may share its processors.
OPEN_MS = 2000
ACTION_MS = 500

BROWSER = None
FOLDER = None
PAGES = {}


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, timeout=300, cwd=ROOT)
    if done.returncode == 77:
        print(done.stdout)
        sys.exit(77)
    if done.returncode != 0:
        raise AssertionError(f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def setUpModule():
    global BROWSER, FOLDER
    BROWSER = started()
    unittest.addModuleCleanup(BROWSER.quit)
    FOLDER = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(FOLDER.cleanup)


def page(name):
    """The page of a program, made once."""
    if name not in PAGES:
        file = EXAMPLES.get(name)
        if name == "bert":
            file = Path(FOLDER.name) / "bert.mlir"
            run(sys.executable, ROOT / "tests" / "browser_bert.py", BERT_LAYERS, file)
        PAGES[name] = Path(FOLDER.name) / f"{name}.html"
        run(TOKAMAK, "explain", file, "--no-compare", "--target", "h200", "--html", PAGES[name])
    return PAGES[name]


class BrowserCase(unittest.TestCase):
    def setUp(self):
        self.b = BROWSER
        self.name = ""
        self.begin = time.monotonic()

    def tearDown(self):
        print(f"{time.monotonic() - self.begin:.1f} s ", end="")
        self.assertEqual(self.b.errors(), [], "errors in the console")

    def open(self, name):
        self.name = name
        return self.b.open(page(name))

    def shot(self, view):
        if self.name in ("adam", "layernorm_dropout"):
            return  # they look like attention
        self.b.shot(SHOTS / f"{self.name}-{view.lower().replace(' ', '-')}.png")

    def details(self):
        return self.b.text("aside")

    def waited(self, what, is_true):
        until = time.monotonic() + 5
        while not is_true():
            self.assertLess(time.monotonic(), until, what)
            time.sleep(0.01)

    def best_ms(self, script, *arguments, tries=3):
        return min(self.b.ms_of(script, *arguments) for _ in range(tries))

    # ---- the views, for the page that is open

    def scale(self):
        return float(self.b.one("svg.graph > g").get_attribute("transform").split("scale(")[1].rstrip(")"))

    def nodes(self):
        return self.b.js("return document.querySelectorAll('svg.graph .node').length")

    def focused(self):
        return self.b.js("return document.activeElement.getAttribute('aria-label')")

    def check_graph(self):
        b = self.b
        b.tab("Graph")
        before = self.nodes()
        self.assertGreater(before, 1)
        # A title opens its group, and closes it.
        groups = len(b.all("svg.graph .node[aria-expanded=false]"))
        for at in range(min(groups, 4)):
            label = b.js("const node = document.querySelectorAll('svg.graph .node[aria-expanded=false]')[arguments[0]];"
                         "node.scrollIntoView({block: 'center', inline: 'center'}); return node.getAttribute('aria-label')", at)
            click = ("const node = [...document.querySelectorAll('svg.graph .node')].find(node => node.getAttribute('aria-label') === arguments[0]);"
                     "node.querySelector('.title').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
            b.js(click, label)
            self.assertGreater(self.nodes(), before, f"{label} did not open")
            b.js(click, label)
            self.assertEqual(self.nodes(), before, f"{label} did not close")
        # Zoom: buttons and keys.
        scale = self.scale()
        for button in b.all(".stage .bar button"):
            if button.text == "Zoom in":
                b.click_on(button)
        self.assertGreater(self.scale(), scale)
        b.js("document.querySelector('svg.graph .node').focus()")
        scale = self.scale()
        b.keys("-")
        self.assertLess(self.scale(), scale)
        b.keys("+")
        self.assertAlmostEqual(self.scale(), scale, delta=0.01)
        b.keys("0")
        # Arrow keys: into the root, to the next member, open, close.
        b.keys(Keys.ARROW_RIGHT)
        first = self.focused()
        b.keys(Keys.ARROW_DOWN)
        self.assertTrue(first != self.focused() or before <= 2, first)
        b.keys(Keys.ARROW_UP, Keys.ENTER)
        self.assertGreater(self.nodes(), before)
        b.keys(Keys.ARROW_LEFT)
        self.assertEqual(self.nodes(), before)

    def check_search(self, word):
        b = self.b
        b.tab("Graph")
        b.js("document.activeElement.blur()")
        b.one("body").send_keys("/")
        self.assertEqual(b.js("return document.activeElement.type"), "search")
        b.keys(word)
        found = b.text(".stage .bar [role=status]")
        self.assertRegex(found, r"^[1-9]\d* found$", word)
        self.assertTrue(b.all("svg.graph .node.match"), word)
        b.keys(Keys.ENTER)
        self.assertRegex(b.text(".stage .bar [role=status]"), r"^1 of \d+$")
        self.shot("Found")
        b.keys(Keys.CONTROL, "a")
        b.keys(Keys.DELETE)

    def check_unfused(self):
        b = self.b
        b.tab("Graph")
        before = self.nodes()
        b.click(".stage .bar input[type=checkbox]")
        self.assertGreater(self.nodes(), 1)
        self.shot("Before fusion")
        b.click(".stage .bar input[type=checkbox]")
        self.assertEqual(self.nodes(), before)

    def check_edges(self):
        """A click on an array shows the decisions about it."""
        b = self.b
        b.tab("Graph")
        if b.all("svg.graph .edge .target"):
            b.js("document.querySelector('svg.graph .edge .target').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
            self.waited("no details of an array", lambda: "Array " in self.details())
            self.shot("Edge")

    def check_timeline(self):
        b = self.b
        b.tab("Timeline")
        blocks = b.all("svg.timeline .block")
        self.assertTrue(blocks)
        b.js("document.querySelector('svg.timeline .block').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
        self.waited("no details of a step", lambda: "Step 1:" in self.details())
        if len(blocks) > 1:
            b.one("svg.timeline").send_keys(Keys.ARROW_RIGHT)
            self.waited("the arrow key did nothing", lambda: "Step 2:" in self.details())
        width = b.one("svg.timeline").size["width"]
        b.js("const range = document.querySelector('.stage .bar input[type=range]'); range.value = 2; range.dispatchEvent(new Event('input'))")
        self.assertGreater(b.one("svg.timeline").size["width"], 2 * width)

    def check_table(self, tab):
        """Every column sorts in both directions; the filter leaves what it names."""
        b = self.b
        b.tab(tab)
        orders = b.js("return [...document.querySelectorAll('.stage th button')].map((button, at) => [0, 1].map(() => {"
                      "document.querySelectorAll('.stage th button')[at].click();"
                      "return document.querySelectorAll('.stage th')[at].getAttribute('aria-sort'); }))")
        self.assertGreater(len(orders), 2)
        for both in orders:
            self.assertEqual(set(both), {"ascending", "descending"})
        numbers = b.js("return [...document.querySelectorAll('.stage tbody tr')].map(row => row.cells[0].textContent)")
        b.js("document.querySelectorAll('.stage th button')[0].click()")
        again = b.js("return [...document.querySelectorAll('.stage tbody tr')].map(row => row.cells[0].textContent)")
        self.assertEqual(sorted(numbers), sorted(again))
        b.type(".stage input[type=search]", "no such name")
        self.assertEqual(b.all(".stage tbody tr"), [])
        b.keys(Keys.CONTROL, "a")
        b.keys(Keys.DELETE)
        self.assertEqual(len(b.all(".stage tbody tr")), len(numbers))

    def check_kernels(self):
        b = self.b
        self.check_table("Kernels")
        name = b.text(".stage tbody tr a")
        b.click(".stage tbody tr a")
        self.waited("no details of a kernel", lambda: name in self.details())
        self.assertTrue(b.all(".stage tbody tr.selected"))
        b.click_on(next(button for button in b.all("aside button") if "graph" in button.text))
        self.assertTrue(b.all("svg.graph .node.selected"), "the step is not marked in the graph")

    def check_source(self):
        b = self.b
        b.tab("Source")
        link = b.one(".stage table a")
        line = link.text
        b.click_on(link)
        self.waited("no details of a line", lambda: f":{line}" in self.details())
        self.assertTrue(b.all(".stage tr.selected"))
        heat = [float(value) for value in b.js("return [...document.querySelectorAll('.stage td.heat')].map(cell => cell.style.getPropertyValue('--heat'))")]
        self.assertAlmostEqual(max(heat), 1, delta=0.01)

    def check_decisions(self):
        b = self.b
        b.tab("Decisions")
        everything = b.text(".stage .bar p")
        for verdict in ("accepted", "rejected"):
            b.js("const box = document.querySelector('.stage select'); box.value = arguments[0]; box.dispatchEvent(new Event('change'))", verdict)
            shown = set(b.texts(".stage tbody tr td:first-child"))
            self.assertLessEqual(shown, {verdict})
        b.js("const box = document.querySelector('.stage select'); box.value = ''; box.dispatchEvent(new Event('change'))")
        self.assertEqual(b.text(".stage .bar p"), everything)
        rules = b.js("return [...document.querySelectorAll('.stage select')].pop().options.length")
        self.assertGreater(rules, 1)
        b.js("const box = [...document.querySelectorAll('.stage select')].pop(); box.selectedIndex = 1; box.dispatchEvent(new Event('change'))")
        self.assertEqual(len(set(b.texts(".stage tbody tr td:nth-child(2)"))), 1)

    def check_missed(self):
        b = self.b
        b.tab("Missed chances")
        links = b.all(".stage tbody a")
        if links:
            b.click_on(links[0])
            self.waited("no details of a missed chance", lambda: b.all("aside h2"))

    def check_code(self):
        """The code of two steps, side by side with the source lines; search; the button of the details."""
        b = self.b
        b.tab("Code")
        steps = b.js("return [...document.querySelector('.stage select').options].length")
        panes = b.texts(".stage .pane")
        self.assertEqual(len(panes), 2)
        self.assertTrue(all(len(pane) > 10 for pane in panes), panes)
        b.type(".stage input[type=search]", "for")
        self.assertRegex(b.text(".stage .bar [role=status]"), r"^\d+ lines?$")
        b.keys(Keys.CONTROL, "a")
        b.keys(Keys.DELETE)
        if steps > 1:
            b.click_on(next(button for button in b.all(".stage button") if button.get_attribute("aria-label") == "Next step"))
            self.waited("no details of the next step", lambda: "Step " in self.details())
        if b.all(".stage .origins button"):
            before = len(b.all(".stage .origins .selected"))
            b.click(".stage .origins button")  # marks the code of this line, or no longer
            self.assertNotEqual(len(b.all(".stage .origins .selected")), before)

    def check_profile(self):
        b = self.b
        b.tab("Compile time")
        bars = len(b.all(".stage svg.flame .bar"))
        self.assertGreater(bars, 2)
        self.assertIn("planning", b.text(".stage").lower())
        b.js("document.querySelectorAll('.stage svg.flame .bar')[1].dispatchEvent(new MouseEvent('click', {bubbles: true}))")
        b.js("document.querySelector('.stage svg.flame .bar').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
        self.assertEqual(len(b.all(".stage svg.flame .bar")), bars)

    def check_theme(self):
        b = self.b
        before = b.js("return getComputedStyle(document.body).backgroundColor")
        b.click("#theme")
        self.assertNotEqual(before, b.js("return getComputedStyle(document.body).backgroundColor"))
        b.click("#theme")

    def check_tabs(self):
        """Every tab shows something, by a click and by arrow keys."""
        b = self.b
        names = b.tabs()
        for name in names:
            b.tab(name)
            label = b.js("return document.querySelector('[role=tabpanel]').getAttribute('aria-label')")
            self.assertEqual(label, name)
            self.assertGreater(len(b.text(".stage")), 10, name)
            self.assertEqual(b.texts("[role=tab][aria-selected=true]"), [name])
            self.shot(name)
        b.tab(names[0])
        b.keys(Keys.ARROW_LEFT)
        self.assertEqual(b.texts("[role=tab][aria-selected=true]"), [names[-1]])
        b.keys(Keys.ARROW_RIGHT)
        self.assertEqual(b.texts("[role=tab][aria-selected=true]"), [names[0]])


class ReportTest(BrowserCase):
    def check_all(self, name, word):
        self.open(name)
        self.check_tabs()
        self.check_graph()
        self.check_search(word)
        self.check_unfused()
        self.check_edges()
        self.check_timeline()
        self.check_kernels()
        self.check_source()
        self.check_decisions()
        self.check_missed()
        self.check_code()
        self.check_profile()
        self.check_theme()

    def test_attention(self):
        self.check_all("attention", "dot")

    def test_adam(self):
        self.check_all("adam", "multiply")

    def test_a_scan(self):
        self.check_all("cartpole", "while")

    def test_layernorm_and_dropout(self):
        self.check_all("layernorm_dropout", "reduce")

    def test_a_large_training_step(self):
        opened = min(self.open("bert") for _ in range(3))
        instrs = self.b.js("return graph.instrs.length")
        print(f"BERT: {instrs} instructions, {page('bert').stat().st_size >> 10} KiB, open in {opened} ms")
        self.assertGreater(instrs, LARGE)
        self.assertLess(opened, OPEN_MS)
        for tab in self.b.tabs():
            self.b.tab(tab)
            self.shot(tab)
        self.b.tab("Graph")
        times = {"zoom": self.best_ms("document.querySelectorAll('.stage .bar button')[0].click()")}
        for at, label in enumerate(self.b.js("return [...document.querySelectorAll('svg.graph .node[aria-expanded=false]')].map(node => node.getAttribute('aria-label'))")[:6]):
            toggle = ("const node = [...document.querySelectorAll('svg.graph .node')].find(node => node.getAttribute('aria-label') === arguments[0]);"
                      "node.querySelector('.title').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
            times[f"toggle {at}"] = self.best_ms(toggle, label, tries=4)
            if at == 0:
                self.b.js(toggle, label)
                self.shot("Open group")
                self.b.js(toggle, label)
        self.b.tab("Timeline")
        times["timeline"] = self.best_ms("const range = document.querySelector('.stage .bar input[type=range]'); range.value = arguments[0]; range.dispatchEvent(new Event('input'))", 1)
        self.b.tab("Kernels")
        times["sort"] = self.best_ms("document.querySelectorAll('.stage th button')[5].click()")
        print("BERT, ms: " + ", ".join(f"{name} {ms:.0f}" for name, ms in times.items()))
        for name, ms in times.items():
            self.assertLess(ms, ACTION_MS, name)

    def test_dark_and_narrow(self):
        b = self.b
        try:
            b.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
            b.driver.set_window_size(800, 900)
            self.open("attention")
            self.name = "dark"
            for tab in b.tabs():
                b.tab(tab)
                self.shot(tab)
                brightness = b.js("return [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color].map(color =>"
                                  "color.match(/\\d+/g).slice(0, 3).reduce((sum, one) => sum + Number(one), 0))")
                self.assertGreater(brightness[1], brightness[0] + 300)
                self.assertLessEqual(b.js("return document.documentElement.scrollWidth - window.innerWidth"), 0, f"{tab} is wider than the window")
        finally:
            b.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
            b.driver.set_window_size(1400, 900)


class OtherPagesTest(BrowserCase):
    """The pages besides the report: a diff, an XLA dump, the index of a folder."""

    def made(self, name, *words):
        self.name = name
        file = Path(FOLDER.name) / f"{name}.html"
        run(TOKAMAK, "explain", *words, "--html", file)
        self.assertLess(self.b.open(file), OPEN_MS)

    def check_tables(self, *tabs):
        for tab in tabs:
            self.check_table(tab)

    def click_row(self, text):
        """A click on the first name of a table shows its details."""
        b = self.b
        name = b.text(".stage tbody tr a")
        b.click(".stage tbody tr a")
        self.waited(f"no details of {name}", lambda: text in self.details())

    def test_two_plans(self):
        b = self.b
        self.made("diff", EXAMPLES["attention"], "--target", "h200", "--diff", "none", "search")
        self.check_tabs()
        b.tab("Totals")
        self.assertIn("search is", b.text(".conclusion"))
        self.assertIn("faster than none", b.text(".conclusion"))
        b.js("document.querySelector('.pair .block.only-b').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
        self.waited("no details of a block", lambda: self.details().startswith("search, step"))
        self.assertTrue(b.all(".pair .block.selected"))
        self.check_tables("Steps", "Source lines", "Decisions")
        b.tab("Steps")
        self.click_row("step")
        steps = len(b.all(".stage tbody tr"))
        b.js("const box = document.querySelector('.stage select'); box.value = 'equal'; box.dispatchEvent(new Event('change'))")
        equal = b.texts(".stage tbody tr td:first-child")
        self.assertTrue(0 < len(equal) < steps and set(equal) == {"equal"}, equal)
        b.tab("Totals")
        self.assertIn(f"{len(equal)} steps equal", b.text(".stage"))

    def test_equal_programs(self):
        self.made("same", "--target", "h200", "--diff", EXAMPLES["adam"], EXAMPLES["adam"])
        self.assertIn("same predicted time", self.b.text(".conclusion"))
        self.b.tab("Decisions")
        self.assertEqual(self.b.all(".stage tbody tr"), [])
        self.b.tab("Steps")
        self.assertEqual(set(self.b.texts(".stage tbody tr td:first-child")), {"equal"})

    def test_a_dump_of_xla(self):
        b = self.b
        self.made("xla", "--xla-dump", ROOT / "tests" / "fusion" / "dumps" / "bert_layer.txt")
        self.check_tabs()
        self.check_tables("Boundaries", "XLA's kernels", "Tokamak's steps")
        b.tab("Boundaries")
        self.click_row("cause")
        b.click("aside a")  # the producer
        self.waited("no details of a kernel", lambda: self.details().startswith("XLA: "))
        self.assertIn("Tokamak's steps", self.details())
        b.tab("Overview")
        b.js("[...document.querySelectorAll('.pair .block')].pop().dispatchEvent(new MouseEvent('click', {bubbles: true}))")
        self.waited("no details of a step", lambda: self.details().startswith("Tokamak: step"))

    def test_the_index_of_a_folder(self):
        b = self.b
        self.name = "index"
        folder = Path(FOLDER.name) / "programs"
        run(sys.executable, "-c", INDEXED, folder)
        b.open(folder / "index.html")
        self.assertEqual(b.errors(), [])
        self.shot("Programs")
        self.assertEqual(b.texts(".stage tbody td:nth-child(2)"), ["jit_double", "jit_rows"])
        self.check_table("Programs")
        b.js("document.querySelectorAll('.stage th button')[0].click()")  # in the order of compilation
        if b.texts(".stage tbody td:nth-child(1)") != ["1", "2"]:
            b.js("document.querySelectorAll('.stage th button')[0].click()")
        b.click(".stage tbody td:nth-child(2) a")  # the report
        b.ready()
        self.assertEqual(b.text("h1"), "jit_double")
        self.assertIn("Graph", b.tabs())


# Two programs that JAX compiles; TOKAMAK_EXPLAIN is set before JAX starts the plugin.
INDEXED = """
import os, sys
sys.path.insert(0, "python")
os.environ.update(TOKAMAK_EXPLAIN=sys.argv[1], JAX_PLATFORMS="tokamak")
try:
    import jax, numpy as np
except ImportError:
    print("skipped: no JAX here (scripts/bootstrap makes a .venv that has it)")
    sys.exit(77)
def double(x): return x + x
def rows(x): return jax.nn.softmax(x)
x = np.ones((8, 16), np.float32)
for f in (double, rows): jax.jit(f)(x).block_until_ready()
"""


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *WORDS])
