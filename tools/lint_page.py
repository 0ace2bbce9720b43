#!/usr/bin/env python3
"""Writes the tables of docs/lint.md: the rules, and how many findings each has over the corpora.

    tools/lint_page.py                          writes the table of rules
    tools/lint_page.py --check                  exit 1 if it differs, or if a rule lacks a test
    tools/lint_page.py --corpora build          also lints all programs of the corpora and counts (minutes)

Rules come from src/driver/report/lint/lint_rules.def. Each has a text test in tests/explain/lint_*
that finds it, and one that must not (`RUN: lint --rules RULE`, `OUT: no lints`), or the same in
python/tests/test_lint_rules.py.
"""
import argparse
import ast
import collections
import concurrent.futures
import json
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RULES = ROOT / "src/driver/report/lint/lint_rules.def"
PAGE = ROOT / "docs/lint.md"
TESTS = ROOT / "tests/explain"
PYTHON_TESTS = ROOT / "python/tests/test_lint_rules.py"
LIMIT_S = 60  # of one file of a corpus


def rules():
    """Names and meanings."""
    text = RULES.read_text()
    found = re.findall(r'^TOK_LINT\(("(?:[^"\\]|\\.)*"), ("(?:[^"\\]|\\.)*"),', text, re.M)
    return [(ast.literal_eval(name), ast.literal_eval(meaning)) for name, meaning in found]


def rule_table():
    rows = [f"| `{name}` | {meaning} |" for name, meaning in rules()]
    return "\n".join(["| rule | when |", "|---|---|", *rows])


def replaced(page, marker, text):
    begin, end = f"<!-- {marker} -->", f"<!-- end of {marker} -->"
    head, rest = page.split(begin, 1)
    return f"{head}{begin}\n{text}\n{end}{rest.split(end, 1)[1]}"


def untested():
    """Rules without a test that finds them, or without one that does not."""
    found, absent = set(), set()
    for test in sorted(TESTS.glob("lint_*")):
        selected = None
        for line in test.read_text().splitlines():
            if run := re.match(r"//\s*RUN: lint(?:.*--rules[ =](\S+))?", line):
                selected = run.group(1)
            elif hit := re.match(r"//\s*OUT: .*?(lint\.[a-z0-9-]+)", line):
                found.add(hit.group(1))
            elif re.match(r"//\s*OUT: no lints", line):
                absent.add(f"lint.{selected}")
    # JAX tests the rules whose programs are too long for a text test.
    for rule, severity in re.findall(r'^    \("([a-z0-9-]+)", .*, (None|"warning"|"note")\),$', PYTHON_TESTS.read_text(), re.M):
        (absent if severity == "None" else found).add(f"lint.{rule}")
    return [f"{name}: no test in tests/explain/lint_* {what}" for name, _ in rules()
            for has, what in ((found, "finds it"), (absent, "must not find it")) if name not in has]  # fmt: skip


# ---- counts over the corpora


def lint(tokamak, path, target):
    """The findings of a file's programs, and its seconds. None if `tokamak` fails in a way that no input may cause."""
    begin = time.monotonic()
    try:
        run = subprocess.run([tokamak, "lint", "--json", "--target", target, str(path)], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return None, LIMIT_S, "more than a minute"
    seconds = time.monotonic() - begin
    if run.returncode not in (0, 2, 3):
        return None, seconds, f"exit code {run.returncode}"
    lints = []
    for line in run.stdout.splitlines():
        lints += json.loads(line)["lints"]
    return lints, seconds, ""


def programs(corpus):
    import corpus as corpora

    for name in ("jax", "stablehlo", "xla_hlo", "pjrt_programs"):
        folder = corpora.unpack(name, ROOT / "build/corpus")
        if folder is None:
            continue
        for path in sorted(folder.rglob("*")):
            if name == "jax" and path.suffix != ".mlir":
                continue  # the same program in other forms
            if path.suffix in (".mlir", ".hlo", ".mlirbc", ".bc") and path.is_file() and (not corpus or corpus in str(path)):
                yield name, path


def count(build, args):
    tokamak = str(Path(build) / "bin/tokamak")
    warnings, notes, files, slowest, wrong = collections.Counter(), collections.Counter(), 0, (0, ""), []
    rows = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        jobs = [(path, pool.submit(lint, tokamak, path, args.target)) for _, path in programs(args.filter)]
        for path, job in jobs:
            lints, seconds, why = job.result()
            files += 1
            slowest = max(slowest, (seconds, path.name))
            if lints is None:
                wrong.append(f"{path}: {why}")
                continue
            for one in lints:
                (warnings if one["severity"] == "warning" else notes)[one["rule"]] += 1
                rows.append({"path": str(path), **one})
    if args.json:
        Path(args.json).write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{files} files, {len(wrong)} failures; slowest: {slowest[1]}, {slowest[0]:.1f} s")
    table = [f"{files} files for `{args.target}`, {len(wrong)} failures:", "", "| rule | warnings | notes |", "|---|---|---|"]
    table += [f"| `{name}` | {warnings[name]} | {notes[name]} |" for name, _ in rules()]
    return "\n".join(table), wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--corpora", metavar="BUILD")
    parser.add_argument("--target", default="h200")
    parser.add_argument("--filter", default="", help="files whose path contains this text; the page is not written")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", help="write all findings to this file, one per line")
    args = parser.parse_args()
    page = PAGE.read_text()
    written = replaced(page, "rules", rule_table())
    if args.check:
        problems = untested() + ([f"{PAGE.name} is out of date: run tools/lint_page.py"] if written != page else [])
        print(*problems, sep="\n", end="\n" if problems else "")
        return 1 if problems else 0
    wrong = []
    if args.corpora:
        counts, wrong = count(args.corpora, args)
        if args.filter:
            print(counts)
        else:
            written = replaced(written, "counts", counts)
    PAGE.write_text(written)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
