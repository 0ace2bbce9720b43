#!/usr/bin/env python3
"""Every row of errors.def has a page docs/errors/TKnnnn.md and at least one test in tests/errors.

    tools/check_errors.py                   lists missing ones; exit 1 if there are any
    tools/check_errors.py --write-pages     writes missing pages from the row and its first test
    tools/check_errors.py --counts          how many cases and codes tests/errors has
"""
import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r'^TOK_ERROR\((\d+),\s*(\w+),\s*(\w+),\s*"(\w+)",\s*"((?:[^"\\]|\\.)*)"\)', re.M)
EXPECTED = re.compile(r"^(?://|#) ERROR: (TK\d+)( at .*)?$", re.M)
EXIT = {"kMismatch": 1, "kBadInput": 2, "kUnsupported": 3, "kMachine": 4, "kOurBug": 70}
# Errors that no input reaches: guards against our own bugs. Each with its reason.
UNREACHABLE = ROOT / "tests/errors/unreachable.txt"


def rows():
    for path in sorted((ROOT / "src/support/errors").glob("*.def")):
        for number, name, exit_code, status, meaning in ROW.findall(path.read_text()):
            yield f"TK{number}", name, exit_code, status, meaning


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


def page(code, name, exit_code, status, meaning, tests):
    title = re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()
    text = f"# {code}: {title}\n\n{meaning}\n\n"
    text += f"`tokamak` exits with {EXIT[exit_code]}; through PJRT it is `{status}`.\n"
    shown = [t for t in tests if t[0].suffix in (".hlo", ".mlir") and t[0].stat().st_size < 1200]
    if shown:
        path, location = shown[0]
        body = [line for line in path.read_text().splitlines() if not line.startswith("//")]
        comment = [line[3:] for line in path.read_text().splitlines() if re.match(r"// (?!RUN:|ERROR:|EXIT:|ERR:|OUT:)", line)]
        text += f"\n## Example\n\n{' '.join(comment)}\n\n```\n" + "\n".join(body).strip("\n") + "\n```\n"
        text += f"\nThe error is reported{location}.\n" if location else ""
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write-pages", action="store_true")
    parser.add_argument("--counts", action="store_true")
    args = parser.parse_args()
    tests, excused = tests_by_code(), unreachable()
    if args.counts:
        print(f"{sum(map(len, tests.values()))} errors asserted over {len(tests)} codes")
        return 0
    missing = []
    for code, name, exit_code, status, meaning in rows():
        file = ROOT / "docs/errors" / f"{code}.md"
        if args.write_pages and not file.exists():
            file.parent.mkdir(exist_ok=True)
            file.write_text(page(code, name, exit_code, status, meaning, tests.get(code, [])))
        if not file.exists():
            missing.append(f"{code} {name}: no page docs/errors/{code}.md")
        if code not in tests and code not in excused:
            missing.append(f"{code} {name}: no test in tests/errors")
    known = {row[0] for row in rows()}
    missing += [f"{code}: a test expects it, errors.def has no such row" for code in tests if code not in known]
    print("\n".join(missing))
    count = len(known)
    print(f"errors: {count} rows, {len(missing)} things missing")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
