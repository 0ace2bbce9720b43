#!/usr/bin/env python3
"""`tokamak lint` from the user's side: exit codes, selected rules, SARIF.

    tests/cli_lint_test.py build/bin/tokamak
"""
import json
import sys
import unittest

from cli_case import CliCase

WIDE = """HloModule m
ENTRY main {
  x = f32[4096,512] parameter(0)
  w = f64[4096,512] convert(x), metadata={op_name="jit(f)/convert" source_file="model.py" source_line=4}
  ROOT s = f64[4096,512] sine(w), metadata={op_name="jit(f)/sin" source_file="model.py" source_line=5}
}
"""
PLAIN = WIDE.replace("f64", "f32").replace("convert", "negate")


class CliLintTest(CliCase):
    def setUp(self):
        super().setUp()
        self.wide, self.plain = self.write("wide.hlo", WIDE), self.write("plain.hlo", PLAIN)

    def test_exit_codes(self):
        us = json.loads(self.tokamak("lint", self.wide, "--json").stdout)["lints"][0]["us"]
        self.tokamak("lint", self.wide)
        self.tokamak("lint", self.wide, "--strict", expect=1)
        self.tokamak("lint", self.plain, "--strict")
        self.tokamak("lint", self.wide, "--fail-on", f"{us / 2}us", expect=1)
        self.tokamak("lint", self.wide, "--fail-on", f"{us * 2}us")
        self.tokamak("lint", self.wide, "--fail-on", "10%", expect=1)
        self.tokamak("lint", self.wide, "--fail-on", "90%")
        for bad in ("10", "us", "-1us", "nan%", "10 us"):
            self.assertIn("such as 20us or 10%", self.tokamak("lint", self.wide, f"--fail-on={bad}", expect=2).stderr)

    def test_selected_rules(self):
        self.tokamak("lint", self.wide, "--strict", "--rules", "float64", expect=1)
        self.tokamak("lint", self.wide, "--strict", "--rules", "lint.unrolled-loop,dispatch-bound")
        self.tokamak("lint", self.wide, "--strict", "--ignore", "dispatch-bound, float64")
        for option in ("--rules", "--ignore"):
            self.assertIn("'flat64' is not a lint rule; the nearest: lint.float64",
                          self.tokamak("lint", self.wide, option, "flat64", expect=2).stderr)

    def test_sarif(self):
        both = self.write("both.hlo", WIDE + "// -----\n" + PLAIN)
        log = json.loads(self.tokamak("lint", both, "--sarif").stdout)
        self.assertEqual(log["version"], "2.1.0")
        self.assertTrue(log["$schema"].endswith("sarif-2.1.0.json"))
        (run,) = log["runs"]
        driver = run["tool"]["driver"]
        self.assertEqual(driver["name"], "tokamak")
        for rule in driver["rules"]:
            self.assertRegex(rule["id"], r"^lint\.[a-z0-9-]+$")
            for key in ("shortDescription", "fullDescription", "help"):
                self.assertTrue(rule[key]["text"])
        self.assertEqual(len({rule["id"] for rule in driver["rules"]}), len(driver["rules"]))
        self.assertTrue(run["results"])
        for result in run["results"]:
            self.assertEqual(driver["rules"][result["ruleIndex"]]["id"], result["ruleId"])
            self.assertIn(result["level"], ("warning", "note"))
            self.assertTrue(result["message"]["text"])
            for location in result["locations"]:
                self.assertTrue(location["physicalLocation"]["artifactLocation"]["uri"])
        (wide,) = [result for result in run["results"] if result["ruleId"] == "lint.float64"]
        place = wide["locations"][0]["physicalLocation"]
        self.assertEqual((place["artifactLocation"]["uri"], place["region"]["startLine"]), ("model.py", 4))
        self.assertIn("--json", self.tokamak("lint", both, "--sarif", "--json", expect=2).stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
