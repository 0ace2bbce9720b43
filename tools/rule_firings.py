#!/usr/bin/env python3
"""Counts how often each row of the rule table fires over the corpora, and writes docs/results/rules.md. A row that never
fires names the idiom that triggers it (tools/rule_idioms.py).

    tools/rule_firings.py                     the corpora, the default pipeline
    tools/rule_firings.py FOLDER_OR_FILE...   also these programs (bench/run_passes.py --folder build/bench_programs lowers the bench)
    tools/rule_firings.py --check             no corpora: docs/results/rules.md must name exactly the existing rows, and each row
                                              must have fired or have an idiom
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from rule_idioms import IDIOMS

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/results/rules.md"
SKIPPED = 77
LIMIT_S = 60


def rows_of(rule_tests):
    out = subprocess.run([str(rule_tests), "--list"], capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in out.splitlines() if "\t" in line]


def firings(tokamak, path):
    command = [str(tokamak), "opt", str(path), "--passes", "default", "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        report = json.loads(done.stdout) if done.stdout else {}
    except (ValueError, subprocess.TimeoutExpired):
        return []
    return [collections.Counter(d["rule"] for d in p.get("decisions", [])) for p in report.get("programs", [])]


def escaped(text):
    return text.replace("|", "\\|")


def write_page(rows, programs, paths):
    fired, used = collections.Counter(), collections.Counter()
    for counts in programs:
        fired.update(counts)
        used.update(counts.keys())
    names = {row[0] for row in rows}
    lines = [
        f"`tools/rule_firings.py{''.join(' ' + p for p in paths)}`: {len(rows)} rules, "
        f"{sum(1 for r in rows if fired[r[0]])} of them fired, {sum(fired[n] for n in names)} times, in the default "
        f"pipeline over {len(programs)} programs.",
        "",
        "# Firings of the rules",
        "",
        "| rule | meaning | firings | programs, or the idiom that triggers it |",
        "|---|---|---:|---|",
    ]
    for name, meaning, _ in sorted(rows, key=lambda r: (-fired[r[0]], r[0])):
        where = f"{used[name]}" if fired[name] else f"`{IDIOMS.get(name, '')}`"
        lines.append(f"| `{name}` | {escaped(meaning)} | {fired[name]} | {escaped(where)} |")
    PAGE.write_text("\n".join(lines) + "\n")


def check(rows):
    page = PAGE.read_text()
    written = set(re.findall(r"^\| `([^`]+)`", page, re.MULTILINE))
    never = set(re.findall(r"^\| `([^`]+)` .* \| 0 \| ", page, re.MULTILINE))
    names = {row[0] for row in rows}
    errors = [f"{PAGE.relative_to(ROOT)}: {n} is {'missing' if n in names else 'no rule any more'}" for n in names ^ written]
    errors += [f"tools/rule_idioms.py: {name} never fired and has no idiom" for name in never - set(IDIOMS)]
    errors += [f"tools/rule_idioms.py: {name} is no rule" for name in set(IDIOMS) - names]
    print("\n".join(sorted(errors)))
    print(f"tally: {len(names & written)} passed, {len(errors)} failed, 0 skipped")
    return 1 if errors else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("-j", type=int, default=os.cpu_count())
    args = parser.parse_args()
    rows = rows_of(args.build / "bin/tok_rule_tests")
    if args.check:
        return check(rows)
    sys.path.insert(0, str(ROOT / "tools"))
    import check_passes

    files = check_passes.corpus_files()
    if files is None:
        print("skipped: no corpora")
        return SKIPPED
    files += [f for location_path in args.paths for f in check_passes.programs_in(location_path)]
    with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        programs = [c for counts in pool.map(lambda f: firings(args.build / "bin/tokamak", f), files) for c in counts]
    write_page(rows, programs, args.paths)
    return 0


if __name__ == "__main__":
    sys.exit(main())
