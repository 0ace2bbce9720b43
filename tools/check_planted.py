#!/usr/bin/env python3
"""Checks that every planted bug (tests/*/planted, tests/planted/bugs) still applies to the sources, so that tests can find it.
Those of tests/planted/bugs also name the bug, the test of scripts/test that finds it, and the targets built for that test.

usage: check_planted.py [--build DIR]     with a build folder, the named tests must exist"""
import argparse
import subprocess
import sys
from pathlib import Path

import one_test

ROOT = Path(__file__).resolve().parent.parent


def header_of(patch):
    """The lines `name: value` above the diff."""
    above = patch.read_text().split("\n--- ")[0].splitlines()
    return dict(line.split(": ", 1) for line in above if ": " in line)


def errors_of(patch, tests, build):
    if subprocess.run(["git", "apply", "--check", str(patch)], cwd=ROOT, capture_output=True, check=False).returncode:
        yield "does not apply any more; recreate it from the current sources"
    if patch.parent.name != "bugs":
        return
    header = header_of(patch)
    yield from (f"has no line `{name}:`" for name in ("bug", "target", "test") if not header.get(name))
    if tests is None or not header.get("test") or not header.get("target"):
        return
    name, _, part = header["test"].partition(" ")
    why = one_test.why_not(tests, build, name, part)
    if why:
        yield why
    elif sorted(header["target"].split()) != sorted(one_test.binaries_of(tests[name], build)):
        yield f"{name} runs {' '.join(one_test.binaries_of(tests[name], build)) or 'nothing that is built'}, not {header['target']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path)
    build = parser.parse_args().build
    tests = None
    if build is not None:
        build = build.resolve()
        tests = one_test.all_tests(build)
    patches = sorted([*ROOT.glob("tests/*/planted/*.patch"), *ROOT.glob("tests/planted/bugs/*.patch")])
    errors = [f"{patch.relative_to(ROOT)}: {error}" for patch in patches for error in errors_of(patch, tests, build)]
    print("\n".join([*errors, f"planted: {len(patches)} bugs, {len(errors)} errors, 0 warnings"]))
    return 1 if errors or not patches else 0


if __name__ == "__main__":
    sys.exit(main())
