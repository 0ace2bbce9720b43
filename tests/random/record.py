#!/usr/bin/env python3
"""Runs random_programs over a range of seeds and records the result in SEEDS.md.

usage: tests/random/record.py [--bin build/bin/random_programs] --seeds A..B OPTION...

OPTION... is passed to random_programs: --round-trip, --pass NAME, --pipeline, --all. A run with findings
is not recorded: the findings go to tests/fuzz/found/random, and the range is run again.
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "tests/random/SEEDS.md"
HEAD = """# Seeds that were run clean

Written by `tests/random/record.py`. A seed names a program only as long as nothing about drawing changes: `draws` is
`random_programs --hash --seeds 0..1000` of that time. `held`: programs times transformations whose values stayed;
`skipped`: those that the interpreter rejects, or of which nothing is promised.

| date | commit | draws | through | seeds | programs | held | skipped |
|---|---|---|---|---|---|---|---|
"""


def output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def main(arguments: list[str]) -> int:
    if not arguments or "--help" in arguments:
        print(__doc__)
        return 0
    binary = str(ROOT / "build/bin/random_programs")
    if "--bin" in arguments:
        at = arguments.index("--bin")
        binary = arguments[at + 1]
        del arguments[at:at + 2]
    if output("git", "status", "--porcelain", "--", "src", "tests/random/*.cc", "tests/random/*.h"):
        print("note: src or tests/random has changes that are not committed", file=sys.stderr)
    seeds = arguments[arguments.index("--seeds") + 1]
    run = subprocess.run([binary, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    print(run.stdout, end="")
    if run.returncode != 0:
        return run.returncode
    programs = re.search(r"^(\d+) programs of", run.stdout, re.M).group(1)
    held, failed = re.search(r"^tally: (\d+) passed, (\d+) failed", run.stdout, re.M).groups()
    skipped = str(sum(map(int, re.search(r"; of (\d+) no bits are promised, (\d+) the interpreter rejects", run.stdout).groups())))
    assert failed == "0"
    leave_out = {"--seeds", seeds, "--jobs", "--keep", "--pass"}
    words = [w for i, w in enumerate(arguments)
             if w not in leave_out and (i == 0 or arguments[i - 1] not in ("--jobs", "--keep"))]
    through = " ".join(words).replace("--", "") or "hlo mlir pipeline"
    row = [output("date", "-u", "+%Y-%m-%d %H:%M"), output("git", "rev-parse", "--short", "HEAD"),
           output(binary, "--hash", "--seeds", "0..1000"), through, seeds, programs, held, skipped]
    text = PAGE.read_text() if PAGE.exists() else HEAD
    PAGE.write_text(text + "| " + " | ".join(row) + " |\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
