#!/usr/bin/env python3
"""Compares the op counts of MLIR bytecode as our reader and as facts/vhlo_reader.py count them.

    compare_histograms.py --program build/bin/foundation [--facts DIR] FOLDER_OR_FILE...

Reads every *.bc and *.mlirbc below the folders. Prints each file that differs, then a score; exit 1 if any
differs, 77 (skipped) if the facts or the files are missing.
"""
import argparse
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

SKIPPED = 77


def find_files(paths):
    files = []
    for path in map(Path, paths):
        if path.is_dir():
            files += sorted(p for p in path.rglob("*") if p.suffix in (".bc", ".mlirbc"))
        elif path.exists():
            files.append(path)
    return files


def load_oracle(facts):
    source = Path(facts) / "vhlo_reader.py"
    if not source.exists():
        return None
    spec = importlib.util.spec_from_file_location("vhlo_reader", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def expected(oracle, path):
    module = oracle.load(path.read_bytes())
    oracle.dump(module, out=lambda _: None, locs=True)
    return module.hist


def ours(program, files):
    """One line per file: its name, a tab, and a JSON object of counts or of an error."""
    found = {}
    for begin in range(0, len(files), 200):
        names = [str(f) for f in files[begin : begin + 200]]
        run = subprocess.run([program, "--histogram", *names], capture_output=True, text=True, check=False)
        for line in run.stdout.splitlines():
            name, _, counts = line.partition("\t")
            found[name] = json.loads(counts)
    return found


def main():
    repo = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default=str(repo / "build/bin/foundation"))
    corpora = os.environ.get("TOKAMAK_CORPUS", "")
    parser.add_argument("--facts", default=str(Path(corpora).parent / "facts"))
    parser.add_argument("paths", nargs="*", default=[corpora])
    args = parser.parse_args()

    files = find_files([p for p in args.paths if p])
    oracle = load_oracle(args.facts)
    if oracle is None or not files:
        print(f"skipped: {'no files' if oracle else 'no vhlo_reader.py in ' + args.facts}")
        return SKIPPED
    counts = ours(args.program, files)
    equal = 0
    for path in files:
        want, got = expected(oracle, path), counts.get(str(path))
        if want == got:
            equal += 1
        else:
            print(f"{path}: expected {want}, got {got}")
    print(f"{equal}/{len(files)} histograms equal")
    return 0 if equal == len(files) else 1


if __name__ == "__main__":
    sys.exit(main())
