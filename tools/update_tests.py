#!/usr/bin/env python3
"""Updates the expectations of text tests (AFTER, and the locations of ERROR) to the current output. Review the diff before committing.

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
    parser.add_argument("paths", nargs="*", default=[str(ROOT / "tests" / name) for name in FOLDERS])
    args = parser.parse_args()
    # A file is rewritten once per run, since locations move.
    for _ in range(10):
        done = subprocess.run([args.runner, "--update", *args.paths], capture_output=True, text=True, check=False)
        if "files updated" not in done.stdout:
            break
    print(done.stdout, end="")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
