#!/usr/bin/env python3
"""Checks that docs/ops.md equals the output of `tokamak ops`. With --write it is updated.

    tools/check_ops_page.py build/bin/tokamak [--write]
"""
import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokamak")
    parser.add_argument("--write", action="store_true", help="update the page")
    arguments = parser.parse_args()
    command = [arguments.tokamak, "ops", "--markdown", "--tests", "tests/run"]
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    page = ROOT / "docs/ops.md"
    if arguments.write:
        page.write_text(text)
        return 0
    if page.exists() and page.read_text() == text:
        return 0
    print("docs/ops.md is not what `tokamak ops` says: run tools/check_ops_page.py build/bin/tokamak --write")
    return 1


if __name__ == "__main__":
    sys.exit(main())
