#!/usr/bin/env python3
"""The support that `tokamak ops` claims for each op on the CPU and on GPUs matches the result of running it there.

    tests/ops_coverage_test.py build/bin/tokamak
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = ("no step", "copy", "kernel", "library")  # without the interpreter
NO_KERNEL = 3  # the exit code of `run --strict`
# Side effects run on the host, which --strict permits.
OF_THE_HOST = ("infeed", "outfeed", "send", "send-done", "recv", "recv-done", "check", "check-eq", "print", "probe", "run-parallel",
               "rng-get-and-update-state", "sharding-group")  # fmt: skip


def claimed(row, column, kind):
    """The claim for a kind of elements in "kernel; complex: host"."""
    first, *others = row[column].split("; ")
    return dict(other.split(": ") for other in others).get(kind, first)


def main():
    tokamak = sys.argv[1]
    say = lambda *words: subprocess.run([tokamak, *words], capture_output=True, text=True, timeout=120)
    rows = {row["op"]: row for row in json.loads(say("ops", "--json").stdout)}
    samples = json.loads(say("ops", "--samples").stdout)
    failures, compared = [], 0
    failures += [f"{op}: no sample" for op in rows if op not in {sample["op"] for sample in samples}]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "sample.hlo")
        for sample in samples:
            op = sample["op"]
            Path(path).write_text(sample["program"])
            histogram = say("check", path, "--histogram").stdout
            if op not in histogram.split():
                failures.append(f"{op}: its sample does not hold it")
            for column, backend in (("cpu", "cpu"), ("cuda", "sim-cuda")):
                word = claimed(rows[op], column, sample["kind"])
                done = say("run", path, "--backend", backend, "--strict", "--seed", "1")
                if "TK6003" in done.stderr:
                    print(f"skipped: this build has no {backend}")
                    return 77
                compared += 1
                rejected = done.returncode == NO_KERNEL and "TK4005" in done.stderr
                if rejected != (word not in RUNS) and not (op in OF_THE_HOST and word == "host"):
                    failures.append(f"{op} {sample['kind']}: {column} is said to be '{word}', and {backend} says: "
                                    f"{done.returncode} {done.stderr.strip()[:300]}")  # fmt: skip
    print("\n".join(failures))
    print(f"tally: {compared - len(failures)} passed, {len(failures)} failed, 0 skipped")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
