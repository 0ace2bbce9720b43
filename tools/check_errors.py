#!/usr/bin/env python3
"""Every row of errors.def has a row in error_help.def and at least one test in tests/errors.

    tools/check_errors.py             lists missing ones; exit 1 if there are any
    tools/check_errors.py --counts    how many cases and codes tests/errors has

tools/error_pages.py writes docs/errors from the same tables.
"""
import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HELP = ROOT / "src/explain/error_help.def"
TEXT = r'"(?:[^"\\]|\\.)*"'  # a string literal
ROW = re.compile(rf'^TOK_ERROR\((\d+),\s*(\w+),\s*(\w+),\s*"(\w+)",\s*({TEXT})\)', re.M)
HELP_ROW = re.compile(rf"^TOK_ERROR_HELP\((\d+),\s*({TEXT}(?:\s*{TEXT})*),\s*({TEXT}(?:\s*{TEXT})*)\)", re.M)
TOPIC = re.compile(r"^// ---- (\d\d)xx: (.*)$", re.M)
EXPECTED = re.compile(r"^(?://|#) ERROR: (TK\d+)( at .*)?$", re.M)
# Errors that no input reaches: guards against our own bugs. Each with its reason.
UNREACHABLE = ROOT / "tests/errors/unreachable.txt"


@dataclass(frozen=True)
class Help:
    why: str
    fix: str


def joined(literals):
    """The text of adjacent C++ string literals."""
    text = "".join(literal[1:-1] for literal in re.findall(TEXT, literals))
    return re.sub(r"\\(.)", r"\1", text)


def rows():
    for path in sorted((ROOT / "src/support/errors").glob("*.def")):
        for number, name, exit_code, status, meaning in ROW.findall(path.read_text()):
            yield f"TK{number}", name, exit_code, status, joined(meaning)


def help_rows():
    """{code: Help} of error_help.def."""
    return {f"TK{number}": Help(joined(why), joined(fix)) for number, why, fix in HELP_ROW.findall(HELP.read_text())}


def topics():
    """{first two digits: what those errors are about}."""
    return dict(TOPIC.findall(HELP.read_text()))


def tests_by_code():
    found = {}
    for path in sorted((ROOT / "tests/errors").rglob("*")):
        if path.suffix in (".hlo", ".mlir", ".bytes"):
            for code, location in EXPECTED.findall(path.read_text(errors="replace")):
                found.setdefault(code, []).append((path, location))
    for path in sorted((ROOT / "tests/errors/made").glob("*.py")):  # generated inputs
        for code in re.findall(r'"(TK\d{4})"', path.read_text()):
            found.setdefault(code, []).append((path, ""))
    return found


def unreachable():
    """{code: reason} of tests/errors/unreachable.txt."""
    if not UNREACHABLE.exists():
        return {}
    lines = (line.split(None, 1) for line in UNREACHABLE.read_text().splitlines() if line.startswith("TK"))
    return {code: reason for code, reason in lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--counts", action="store_true")
    args = parser.parse_args()
    tests, excused, helped = tests_by_code(), unreachable(), help_rows()
    if args.counts:
        print(f"{sum(map(len, tests.values()))} errors asserted over {len(tests)} codes")
        return 0
    missing, known = [], set()
    for code, name, *_ in rows():
        known.add(code)
        if code not in helped:
            missing.append(f"{code} {name}: no row in src/explain/error_help.def")
        if code not in tests and code not in excused:
            missing.append(f"{code} {name}: no test in tests/errors")
    missing += [f"{code}: a test expects it, errors.def has no such row" for code in tests if code not in known]
    missing += [f"{code}: a row of error_help.def, errors.def has no such row" for code in helped if code not in known]
    missing += [f"{code[:4]}xx: no topic in error_help.def" for code in sorted(known) if code[2:4] not in topics()]
    print("\n".join(missing))
    print(f"errors: {len(known)} rows, {len(missing)} things missing")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
