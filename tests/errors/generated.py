#!/usr/bin/env python3
"""Invalid inputs that are too large to store: generated here, passed to `tokamak`, and deleted.

    tests/errors/generated.py build/bin/tokamak [NAME...]

Every input runs within 4 GiB of address space and 10 s of CPU time. It must end with one of our exit codes and a
located error with the expected code (or none), never with a signal. The last line is a tally.
"""
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from made import bytecode, depth, npz, odd_bytes, running, width  # noqa: F401  each adds its cases
from made.case import CASES

ADDRESS_SPACE = 4 << 30
SECONDS = 10  # of CPU time; wall time is longer on a busy machine
HERE = Path(__file__).resolve().parent


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


EXITS = {}
for definition in (HERE.parent.parent / "src/support/errors").glob("*.def"):
    for number, kind in re.findall(r"TOK_ERROR\((\d+),\s*\w+,\s*(\w+)", definition.read_text()):
        EXITS[f"TK{number}"] = {"kMismatch": 1, "kBadInput": 2, "kUnsupported": 3, "kMachine": 4, "kOurBug": 70}[kind]


def run_one(tokamak, words):
    begin = time.monotonic()
    environment = dict(os.environ)
    if words[0] == "env":
        name, _, value = words[1].partition("=")
        environment[name] = value
        words = words[2:]
    done = subprocess.run([tokamak, *words], capture_output=True, preexec_fn=limit, timeout=600, check=False, env=environment)
    return done, time.monotonic() - begin


def check_result(done, code, location):
    """A description of the failure; nothing on success."""
    text = done.stderr.decode(errors="replace")
    errors = re.findall(r"^error\[(TK\d+)\]", text, re.M)
    said = f"exit {done.returncode}, {text[:600]!r}"
    if done.returncode < 0 or done.returncode in (70, 134, 137, 139):
        return f"died: {said}"
    if len(text) > 20_000 * max(1, len(errors)):
        return f"{len(text)} bytes of errors"
    # Reading and inference always report a location; files and archives have none.
    locations = re.findall(r"^  --> .*:(\d+:\d+|.byte \d+)$", text, re.M)
    located = [e for e in errors if e[2] in "125" and e not in ("TK1005", "TK5002", "TK5009")]
    if len(locations) < len(located):
        return f"an error without its place: {said}"
    if code == "any":
        return None if (done.returncode == 0) == (not errors) else said
    if code is None:
        return None if done.returncode == 0 or (errors and done.returncode == max(EXITS[e] for e in errors)) else said
    if not errors or not all(e.startswith(code) for e in errors):
        return f"expected {code}, got {said}"
    if done.returncode != max(EXITS[e] for e in errors):
        return f"expected another exit code, got {said}"
    if location is not None and locations != [location]:
        return f"expected it at {location}, got {said}"
    return None


def main():
    tokamak = os.path.abspath(sys.argv[1])
    chosen = sys.argv[2:] or list(CASES)
    failed = 0
    for name in chosen:
        with tempfile.TemporaryDirectory(prefix="tokamak-errors-") as folder:
            words, code, location = CASES[name](Path(folder))
            runs = words if isinstance(words[0], list) else [words]
            for one in runs:
                done, seconds = run_one(tokamak, one)
                error = check_result(done, code, location)
                if error is not None:
                    failed += 1
                    print(f"FAILED {name}: {error} ({seconds:.1f} s)", flush=True)
                    break
    print(f"tally: {len(chosen) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
