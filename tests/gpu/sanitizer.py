#!/usr/bin/env python3
"""sanitizer.py TEXT_TESTS BACKEND [--repeat N FILE]: compute-sanitizer over a sample of the text tests, or over one file N times."""
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TESTS, BACKEND = sys.argv[1:3]
SANITIZER = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
# memcheck: each kind of kernel once; racecheck: those that use shared memory most.
SAMPLE = {
    "memcheck": ["gpu_sort_sizes", "gpu_scan_sizes", "gpu_rows_columns", "gpu_contract_sizes", "gpu_scatter_any", "gpu_top_k"],
    "racecheck": ["gpu_sort_sizes", "gpu_softmax_long"],
}


def sanitize(job):
    tool, files = job
    command = [TESTS, "--backend", BACKEND, "-j", "1", *files]
    if BACKEND == "cuda":
        command = [SANITIZER, "--tool", tool, "--error-exitcode", "66", *command]
    begin = time.time()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    text = done.stdout + done.stderr
    summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: .*", text)
    good = done.returncode == 0 and (BACKEND != "cuda" or bool(summary))
    words = f"{time.time() - begin:.0f} s, {summary[-1] if summary else ''}"
    return f"{tool} {' '.join(Path(f).name for f in files)}", good, words if good else words + "\n" + text[-1500:]


def main():
    if BACKEND == "cuda" and not os.access(SANITIZER, os.X_OK):
        print("there is no compute-sanitizer here\ntally: 0 passed, 0 failed, 1 skipped")
        return 0
    jobs = [(tool, [f"{ROOT}/tests/codegen/{name}.hlo"]) for tool, names in SAMPLE.items() for name in names]
    if "--repeat" in sys.argv:
        at = sys.argv.index("--repeat")
        jobs = [(tool, [sys.argv[at + 2]]) for _ in range(int(sys.argv[at + 1])) for tool in SAMPLE]
    bad = 0
    with ThreadPoolExecutor(4) as pool:
        for name, good, words in pool.map(sanitize, jobs):
            bad += not good
            print(f"{'passed' if good else 'FAILED'} {name}: {words}", flush=True)
    print(f"figure: {len(jobs) - bad} of {len(jobs)} runs without a fault or a race")
    print(f"tally: {len(jobs) - bad} passed, {bad} failed, 0 skipped")
    return 1 if bad or not jobs else 0


sys.exit(main())
