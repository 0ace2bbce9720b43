#!/usr/bin/env python3
"""One test of scripts/test, or a part of one: what to build for it, and how to run it.

usage: one_test.py [--build DIR] NAME [PART]           runs it
       one_test.py [--build DIR] --target NAME [PART]  prints the targets to build
NAME is one of `ctest -N`. PART is a file of a text test (tests/codegen/scan.hlo) or a filter of a unit test (Simplify.LongSums)."""
import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = {"slow", "gpu", "fuzz"}  # as in scripts/test


def all_tests(build):
    """The tests of a build folder, by name, as ctest lists them."""
    done = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"], capture_output=True, text=True, check=True)
    return {test["name"]: test for test in json.loads(done.stdout)["tests"]}


def property_of(test, name, default=None):
    return next((p["value"] for p in test["properties"] if p["name"] == name), default)


def binaries_of(test, build):
    """The programs of the build that a test runs: targets of the same names."""
    return [Path(word).name for word in test["command"] if Path(word).parent == build / "bin"]


def has_unit_test(part):
    suite, _, case = part.partition(".")
    pattern = re.compile(rf"^TEST(_[FP])?\({re.escape(suite)}, {re.escape(case)}\)", re.M)
    return any(pattern.search(path.read_text()) for path in ROOT.glob("src/**/*_test.cc"))


def why_not(tests, build, name, part):
    """Why a test of this name and part does not exist; nothing if it does."""
    test = tests.get(name)
    if test is None:
        return f"there is no test {name}"
    if LEFT_OUT & set(property_of(test, "LABELS", [])):
        return f"scripts/test does not run {name}"
    if not part:
        return ""
    binary = (binaries_of(test, build) or [""])[0]
    if binary.startswith("tok_unit_"):
        return "" if has_unit_test(part) else f"there is no unit test {part}"
    if binary not in ("tok_text_tests", "tok_kernel_tests"):
        return f"{name} has no parts"
    if not (ROOT / part).is_file():
        return f"there is no file {part}"
    folders = [ROOT / "tests" / word for word in test["command"] if (ROOT / "tests" / word).exists()]
    return "" if any((ROOT / part).is_relative_to(folder) for folder in folders) else f"{part} is no part of {name}"


def command_of(test, part):
    """The command that runs the test, or only the part."""
    command = list(test["command"])
    if not part:
        return command
    if Path(command[0]).name.startswith("tok_unit_"):
        return [*command, f"--gtest_filter={part}"]
    options = [word for word in command[1:] if not (ROOT / "tests" / word).exists()]
    return [command[0], *options, str(ROOT / part)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--target", action="store_true")
    parser.add_argument("name")
    parser.add_argument("part", nargs="?", default="")
    args = parser.parse_args()
    build = args.build.resolve()
    tests = all_tests(build)
    if why := why_not(tests, build, args.name, args.part):
        sys.exit(f"error: {why}")
    test = tests[args.name]
    if args.target:
        print(" ".join(binaries_of(test, build)))
        return 0
    env = dict(os.environ)
    env.update(line.split("=", 1) for line in property_of(test, "ENVIRONMENT", []))
    try:
        return subprocess.run(command_of(test, args.part), cwd=property_of(test, "WORKING_DIRECTORY"), env=env, check=False,
                              timeout=property_of(test, "TIMEOUT", 600)).returncode
    except subprocess.TimeoutExpired:
        print(f"{args.name} has not ended in its time")
        return 124


if __name__ == "__main__":
    sys.exit(main())
