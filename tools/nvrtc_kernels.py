#!/usr/bin/env python3
"""Compiles the GPU kernels of programs with NVRTC for sm_90, each distinct kernel once.

    tools/nvrtc_kernels.py                       a tenth of the corpora, a different one each day
    tools/nvrtc_kernels.py --all                 all of them
    tools/nvrtc_kernels.py FILE|FOLDER...        these programs
    tools/nvrtc_kernels.py --no-spills FILE...   a kernel that spills registers is a failure

Constants of a program become arguments, so that there is something to compile. The last lines report programs, kernels,
kernels that spill, and a tally. Needs the corpora in $TOKAMAK_CORPUS.
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = 77
SUFFIXES = {".mlir", ".mlirbc", ".hlo"}


def corpus_files():
    """Every runnable program of the corpora: [(name, path)]."""
    sys.path.insert(0, str(ROOT / "tools"))
    import corpus

    files = []
    for name in ("stablehlo", "xla_hlo", "jax"):
        folder = corpus.unpack(name, ROOT / "build/corpus")
        if folder is None:
            continue
        for path in sorted(Path(folder).rglob("*")):
            inside = path.relative_to(folder)
            if not path.is_file() or "parse" in inside.parts:
                continue
            if path.suffix in SUFFIXES or (name == "xla_hlo" and path.suffix == ".txt"):
                files.append((f"{name}/{inside}", path))
    return files


def named_files(paths):
    files = []
    for path in map(Path, paths):
        if path.is_dir():
            files += [(str(p), p) for p in sorted(path.rglob("*")) if p.suffix in SUFFIXES]
        else:
            files.append((str(path), path))
    return files


def lower(tokamak, path, out):
    """Writes the kernels of a program; returns whether there are any."""
    command = [tokamak, "kernels", str(path), "--target", "cuda", "--hoist"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=120)
    except subprocess.TimeoutExpired:
        return None, "takes more than 120 s"
    if done.returncode >= 70 or done.returncode < 0:
        return None, done.stderr.decode(errors="replace")[-300:]
    if not re.search(rb"^kernel ", done.stdout, re.M):
        return False, ""
    out.write_bytes(done.stdout)
    return True, ""


def compile_all(tests, files, jobs):
    """The output of tok_kernel_tests --nvrtc over all files, in `jobs` processes."""
    parts = [files[i::jobs] for i in range(jobs)]
    running = [subprocess.Popen([tests, "--nvrtc", *map(str, part)], stdout=subprocess.PIPE, text=True)
               for part in parts if part]
    return [(process.communicate()[0], process.returncode) for process in running]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--all", action="store_true", help="all programs of the corpora")
    parser.add_argument("--no-spills", action="store_true")
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("-j", type=int, default=2, dest="jobs")
    args = parser.parse_args()
    if args.files:
        files = named_files(args.files)
    else:
        files = corpus_files()
        if not files:
            print("skipped: there are no corpora (TOKAMAK_CORPUS says where they are)")
            return SKIPPED
        if not args.all:
            tenth = int(time.time() // 86400) % 10
            files = [(name, path) for name, path in files if zlib.crc32(name.encode()) % 10 == tenth]
    tokamak, tests = str(args.build / "bin/tokamak"), str(args.build / "bin/tok_kernel_tests")
    failed = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        texts = [Path(folder) / f"{i}.kernel" for i in range(len(files))]
        lowered = list(pool.map(lambda pair: lower(tokamak, pair[0][1], pair[1]), zip(files, texts)))
        for (name, _), (good, why) in zip(files, lowered):
            if good is None:
                print(f"FAILED {name}: {why}")
                failed += 1
        texts = [text for text, (good, _) in zip(texts, lowered) if good]
        outputs = compile_all(tests, texts, args.jobs)
    counts = {"kernels": 0, "spill": 0, "without": 0}
    for output, code in outputs:
        if code == SKIPPED:
            print(output.strip())
            return SKIPPED
        for line in output.splitlines():
            if not line.startswith("tally:") and " registers at most" not in line:
                print(line)
            if found := re.match(r"(\d+) kernels, .*, (\d+) without CUDA C\+\+, (\d+) spill", line):
                for key, value in zip(("kernels", "without", "spill"), found.groups()):
                    counts[key] += int(value)
            if found := re.match(r"tally: \d+ passed, (\d+) failed", line):
                failed += int(found[1])
    if args.no_spills:
        failed += counts["spill"]
    print(f"{len(files)} programs, {len(texts)} with kernels; {counts['kernels']} kernels compiled for sm_90, "
          f"{counts['spill']} spill, {counts['without']} without CUDA C++")
    print(f"tally: {max(counts['kernels'] - failed, 0)} passed, {failed} failed, 0 skipped")
    return 1 if failed or not counts["kernels"] else 0


if __name__ == "__main__":
    sys.exit(main())
