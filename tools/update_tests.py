#!/usr/bin/env python3
"""Rewrites what text tests expect (AFTER, and the places of ERROR) to what is there now. Read the diff before you commit it.

    tools/update_tests.py [--runner build/bin/tok_text_tests] [FOLDER_OR_FILE]...     (default: all of tests/)
"""
import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["read", "run", "normal", "passes", "codegen", "errors"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runner", default=ROOT / "build/bin/tok_text_tests")
    parser.add_argument("places", nargs="*", default=[str(ROOT / "tests" / name) for name in FOLDERS])
    args = parser.parse_args()
    # A file is rewritten once a turn, since places move.
    for _ in range(10):
        done = subprocess.run([args.runner, "--update", *args.places], capture_output=True, text=True, check=False)
        if "files updated" not in done.stdout:
            break
    print(done.stdout, end="")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
