#!/usr/bin/env python3
"""The steps that `explain` lists are those that executables issue, by name, count and hash, for the host and an H200.

    issued_test.py TOK_ISSUED_STEPS            the examples and the programs of tests/
    issued_test.py TOK_ISSUED_STEPS --corpus   the corpora of $TOKAMAK_CORPUS

A recording device replaces the processor and the GPU (tests/issued/main.cc)."""
import concurrent.futures
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = 77
LIMIT_S = 300  # per batch of files
BATCH = 40


def corpus_files():
    sys.path.insert(0, str(ROOT / "tools"))
    import corpus

    if not corpus.corpus_folder().is_dir():
        return None
    files = []
    for name in ("jax", "xla_hlo", "stablehlo"):
        folder = corpus.unpack(name, ROOT / "build/corpus")
        if folder is not None:
            files += [p for p in sorted(folder.rglob("*")) if p.suffix in (".mlir", ".hlo", ".mlirbc")]
    return files


def own_files():
    folders = ["examples", "tests/run/ops", "tests/codegen", "tests/fusion", "tests/explain", "tests/passes"]
    return [p for f in folders for p in sorted((ROOT / f).rglob("*")) if p.suffix in (".mlir", ".hlo")]


def run(tool, files):
    """The exit code, the output, and the five counts of the last line."""
    command = [tool, *map(str, files)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return 1, f"longer than {LIMIT_S} s: {files[0]} ...\n", [0] * 5
    lines = done.stdout.splitlines()
    if not lines or "programs the same" not in lines[-1]:
        return 1, f"ended with {done.returncode}: {files[0]} ...\n{done.stdout}{done.stderr}", [0] * 5
    counts = [int(word) for word in lines[-1].replace(",", "").split() if word.isdigit()]
    return 0, "\n".join(lines[:-1]), counts


def main():
    tool, with_corpus = sys.argv[1], "--corpus" in sys.argv
    files = corpus_files() if with_corpus else own_files()
    if files is None:
        print("skipped: there are no corpora (set TOKAMAK_CORPUS)")
        return 1 if os.environ.get("TOKAMAK_REQUIRE_CORPUS") == "1" else SKIPPED
    batches = [files[i : i + BATCH] for i in range(0, len(files), BATCH)]
    totals, bad = [0] * 5, 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for code, text, counts in pool.map(lambda batch: run(tool, batch), batches):
            bad += code
            totals = [x + y for x, y in zip(totals, counts)]
            if text and (code or counts[1]):
                print(text)
    same, different, rejected, interpreted, too_long = totals
    print(f"{len(files)} files: {same} programs the same, {different} different, {rejected} do not compile, "
          f"{interpreted} interpreted, {too_long} too long to record")
    print(f"passed: {same}")
    return 1 if bad or different or same < len(files) // 4 else 0


if __name__ == "__main__":
    sys.exit(main())
