#!/usr/bin/env python3
"""Adds up the JUnit files of ctest and pytest, and prints failures, skips and their reasons.

A ctest entry counts as one case, unless its output says more: a line
`tally: 12 passed, 0 failed, 3 skipped` (our own runners print it last), or googletest's closing
lines. A line `skipped: <reason>`, googletest's message and pytest's give the reason of a skip; one without a reason is a failure.

usage: tally.py [--skipped REASON]... [--failed REASON]... FILE.xml...
The last line printed is `N passed, N failed, N skipped`; the exit code is 1 if something failed."""
import argparse
import re
import sys
import xml.etree.ElementTree as xml

OURS = re.compile(r"^tally: (\d+) passed, (\d+) failed, (\d+) skipped\s*$", re.M)
GTEST = {word: re.compile(rf"^\[  {word} +\] (\d+) tests?\b", re.M) for word in ("PASSED", "FAILED", "SKIPPED")}
REASON = re.compile(r"^skipped: (.+)$|^\S+:\d+: Skipped\n(.+)$", re.M)


def counts(case):
    """(passed, failed, skipped) of one JUnit case."""
    output = case.findtext("system-out") or ""
    failed = case.find("failure") is not None or case.find("error") is not None
    if ours := OURS.findall(output):
        passed, wrong, skipped = map(int, ours[-1])
        return passed, max(wrong, int(failed)), skipped
    gtest = {word: sum(map(int, pattern.findall(output))) for word, pattern in GTEST.items()}
    if any(gtest.values()):
        return gtest["PASSED"], max(gtest["FAILED"], int(failed)), gtest["SKIPPED"]
    if failed:
        return 0, 1, 0
    return (0, 0, 1) if case.find("skipped") is not None or case.get("status") == "disabled" else (1, 0, 0)


def reasons(case):
    """Why parts of a JUnit case were skipped, each reason once."""
    report = ["".join(match) for match in REASON.findall(case.findtext("system-out") or "")]
    skipped = case.find("skipped")
    if not report and skipped is not None and skipped.get("type", "").startswith("pytest"):
        report = [skipped.get("message", "")]
    return list(dict.fromkeys(reason for reason in report if reason))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skipped", action="append", default=[], metavar="REASON")
    parser.add_argument("--failed", action="append", default=[], metavar="REASON")
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    total = [0, len(args.failed), len(args.skipped)]
    lines = [f"FAILED   {reason}" for reason in args.failed] + [f"skipped  {reason}" for reason in args.skipped]
    for path in args.files:
        build = path.rpartition("/")[2].removesuffix(".xml")
        for case in xml.parse(path).getroot().iter("testcase"):
            numbers, why = counts(case), reasons(case)
            if numbers[2] and not why:
                why = ["no reason given, which is a failure"]
                numbers = (numbers[0], numbers[1] + 1, numbers[2])
            total = [a + b for a, b in zip(total, numbers)]
            name = f"{build}: {case.get('name')}"
            if numbers[1]:
                lines.append(f"FAILED   {name}: {numbers[1]} failed")
            if numbers[2]:
                lines.append(f"skipped  {name}: {numbers[2]} skipped: {'; '.join(why[:4])}")
    for line in sorted(lines, key=lambda line: line.startswith("FAILED")):
        print(line)
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] else 0


if __name__ == "__main__":
    sys.exit(main())
