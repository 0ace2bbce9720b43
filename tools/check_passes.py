#!/usr/bin/env python3
"""Verifies on the corpora that passes preserve values: the interpreter gives the same bits before and after each pass alone,
and the whole pipeline, on random inputs, on hard ones (NaN, infinities, zeros, extremes) and on those of the corpus.
Prints one table; exit 1 if a value differs, a program no longer verifies, or a pass fails.

    tools/check_passes.py                        everything that interprets in less than 1 s
    tools/check_passes.py --filter scatter       files whose path contains this text
    tools/check_passes.py --passes simplify      this pipeline instead of the default one
    tools/check_passes.py --json out.json        the rows, and each file, as JSON
    tools/check_passes.py --from out.json        prints the results of an earlier run
    tools/check_passes.py FOLDER_OR_FILE...      these programs instead of the corpora
"""
import argparse
import collections
import concurrent.futures
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = 77
LIMIT_S = 60  # seconds for all passes of a file; exceeding it is a bug
PATIENCE = 60  # times --seconds: if the interpreter, which runs twice per pass, needs longer, values are not compared


def corpus_files():
    sys.path.insert(0, str(ROOT / "tools"))
    import corpus  # needs NumPy

    cache = ROOT / "build/corpus"
    cache.mkdir(parents=True, exist_ok=True)
    files = []
    for name in ("stablehlo", "xla_hlo", "jax"):
        folder = corpus.unpack(name, cache)
        if folder is None:
            return None
        files += programs_in(folder / "dev")
    return files


def programs_in(location_path):
    location_path = Path(location_path)
    if location_path.is_file():
        return [location_path]
    return sorted(p for name in ("*.hlo", "hlo.txt", "*.mlir", "*.mlirbc") for p in location_path.rglob(name))


def inputs_of(path):
    """The inputs that the corpus has for a program, if any."""
    for name in (path.with_suffix(".npz"), path.parent / "io.npz", path.parent / "inputs.npz"):
        if name.exists():
            return name
    return None


def passes_of(args):
    """With a target, its passes after the default ones unless others are named."""
    named = ["--passes", args.passes] if args.passes else []
    return named + (["--target", args.target] if args.target else [])


def without_values(path, tokamak, args):
    """Runs only the passes: the interpreter may need minutes for one operation of a program."""
    command = [str(tokamak), "opt", str(path), "--verify-each", "--json", *passes_of(args)]
    report = {"file": str(path), "exit": 0, "programs": []}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        if done.returncode not in (0, 2, 3):
            report.update(exit=done.returncode, fault=done.stderr.strip()[:600])
    except subprocess.TimeoutExpired:
        report.update(exit=-1, fault=f"the passes took longer than {LIMIT_S} s")
    return report


def check(tokamak, path, args):
    command = [str(tokamak), "opt", str(path), "--check-each", "--check-values", "--verify-each", "--json",
               *passes_of(args), "--seconds", str(args.seconds)]  # fmt: skip
    inputs = inputs_of(path)
    if inputs is not None:
        command += ["--inputs", str(inputs)]
    begin = time.time()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE * args.seconds, check=False)
        if done.returncode == 2 and inputs is not None and "TK600" in done.stderr:  # the program takes other inputs
            done = subprocess.run(command[:-2], capture_output=True, text=True, timeout=PATIENCE * args.seconds, check=False)
    except subprocess.TimeoutExpired:
        return without_values(path, tokamak, args)
    try:
        report = json.loads(done.stdout) if done.stdout else {}
    except ValueError:
        report = {}
    report.setdefault("programs", [])
    report.update(file=str(path), exit=done.returncode, seconds=time.time() - begin)
    # 2 and 3: the file does not parse or verify, or cannot be compiled unchanged. That is not a bug of a pass.
    if done.returncode not in (0, 2, 3):
        report["fault"] = done.stderr.strip()[:600] or f"exit {done.returncode}"
    return report


class Row:
    def __init__(self):
        self.programs = self.changed = self.changes = self.same = self.differs = self.unknown = 0
        self.before = self.after = 0
        self.ms = 0.0

    def add(self, run, values):
        self.programs += 1
        self.changed += run["changed"]
        self.changes += run["changes"]
        self.before += run["instructions"]
        self.after += run["after"]
        self.ms += run["ms"]
        self.same += values == "same"
        self.unknown += values == "not compared"
        self.differs += values not in ("same", "not compared")


def whole(program):
    passes = program.get("passes") or []
    if not passes:
        return None
    return {"changed": any(p["changed"] for p in passes), "changes": sum(p["changes"] for p in passes),
            "instructions": passes[0]["instructions"], "after": passes[-1]["after"],
            "ms": sum(p["ms"] for p in passes)}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--tokamak", default=ROOT / "build/bin/tokamak")
    parser.add_argument("--filter", default="")
    parser.add_argument("--passes", default="", help="the pipeline (default: default, and that of the target)")
    parser.add_argument("--target", default="", choices=["", "host", "h200"], help="also the passes for this target")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("-j", type=int, default=os.cpu_count())
    parser.add_argument("--json")
    parser.add_argument("--from", dest="reports", help="what --json wrote")
    parser.add_argument("--rules", action="store_true", help="also how often each rule fired, and in how many programs")
    args = parser.parse_args()
    if args.reports:
        report_on(json.loads(Path(args.reports).read_text()), args)
        return 0
    files = [f for p in args.paths for f in programs_in(p)] if args.paths else corpus_files()
    if files is None:
        print("skipped: there are no corpora (TOKAMAK_CORPUS says where they are)")
        return 1 if os.environ.get("TOKAMAK_REQUIRE_CORPUS") == "1" else SKIPPED
    files = [f for f in files if args.filter in str(f)]
    with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        reports = list(pool.map(lambda f: check(args.tokamak, f, args), files))
    report_on(reports, args)
    errors = sum("fault" in r for r in reports)
    print(f"tally: {len(reports) - errors} passed, {errors} failed, 0 skipped")
    return 1 if errors or not reports else 0


def summarize(reports):
    rows, reasons, rules = collections.defaultdict(Row), collections.Counter(), collections.defaultdict(list)
    for report in reports:
        for program in report["programs"]:
            reasons[program.get("not_compared", "")[:60]] += 1
            for run in program.get("each", []):
                rows[run["pass"]].add(run, run["values"])
            run = whole(program)
            if run is not None:
                rows["(pipeline)"].add(run, "not compared" if "not_compared" in program else program.get("values", "same"))
            fired = collections.Counter(d["rule"] for d in program.get("decisions", []))
            for rule, count in fired.items():
                rules[rule].append(count)
    return rows, reasons, rules


def report_on(reports, args):
    rows, reasons, rules = summarize(reports)
    for report in reports:
        if "fault" in report:
            print(f"FAILED {report['file']}: {report['fault']}")
    lines = [f"{'pass':<24}{'programs':>9}{'changed':>9}{'changes':>10}{'instrs':>10}{'after':>10}{'same':>7}{'differ':>8}"
             f"{'not run':>9}{'ms':>10}"]  # fmt: skip
    lines += [f"{name:<24}{row.programs:>9}{row.changed:>9}{row.changes:>10}{row.before:>10}{row.after:>10}{row.same:>7}"
              f"{row.differs:>8}{row.unknown:>9}{row.ms:>10.1f}" for name, row in rows.items()]  # fmt: skip
    rejected = sum(r["exit"] in (2, 3) for r in reports)
    lines.append(f"{len(reports)} files, {rejected} of them not readable or not verified, "
                 f"{sum(reasons.values()) - reasons['']} programs not compared")  # fmt: skip
    print("\n".join(lines))
    if args.rules:
        print(f"\n{'rule':<32}{'programs':>9}{'firings':>10}")
        for rule, counts in sorted(rules.items(), key=lambda item: -sum(item[1])):
            print(f"{rule:<32}{len(counts):>9}{sum(counts):>10}")
    if args.json:
        Path(args.json).write_text(json.dumps(reports))


if __name__ == "__main__":
    sys.exit(main())
