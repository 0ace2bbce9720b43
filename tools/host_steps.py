#!/usr/bin/env python3
"""Counts the instructions that a backend leaves to the interpreter: host steps by op and reason.

    tools/host_steps.py                    every program of the corpora
    tools/host_steps.py --strict           exit 1 if a program has a host step that is not inherent
    tools/host_steps.py --op scatter       only this op, with the programs
    tools/host_steps.py --target cuda      on GPUs
    tools/host_steps.py FILE|FOLDER...     these programs

Constants become arguments, so that there is something to compute. Checks, host calls, LAPACK, collectives and programs
with dynamic shapes inherently run on the host: they are counted separately. Needs the corpora in $TOKAMAK_CORPUS.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import nvrtc_kernels

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = 77
LIMIT_S = 120
HOST = re.compile(r"^ *host (\S+) \((.*)\):[ 0-9+-]*$")
ALL = "the whole program is interpreted: "

# Ops that inherently run on the host.
BY_MEANING = {
    "custom-call", "probe", "run-parallel", "infeed", "outfeed", "send", "recv", "send-done", "recv-done",
    "after-all", "create-token", "partition-id", "replica-id", "all-gather", "all-reduce", "all-to-all",
    "all-reduce-start", "all-reduce-done", "all-gather-start", "all-gather-done", "ragged-all-to-all",
    "collective-permute", "collective-permute-start", "collective-permute-done", "collective-broadcast",
    "reduce-scatter", "async-start", "async-update", "async-done", "get-dimension-size", "set-dimension-size",
}  # fmt: skip


def steps_of(tokamak, path, target):
    """[(op, reason)] of one program's host steps; an op "" means that the interpreter runs the whole program."""
    command = [str(tokamak), "kernels", str(path), "--hoist", "--no-text", "--target", target]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return [], f"takes more than {LIMIT_S} s"
    steps = []
    for line in done.stdout.splitlines():
        if match := HOST.match(line):
            steps.append(match.groups())
        elif line.startswith(ALL):
            reason = line[len(ALL):]
            steps.append(("", "a shape without fixed sizes" if "has no static shape" in reason else reason))
    died = done.returncode < 0 or done.returncode >= 70
    return steps, f"ends with {done.returncode}: {done.stderr[-200:]}" if died else ""


def is_by_meaning(op, reason):
    return op in BY_MEANING or op.startswith("check") or op == ""


def print_table(title, counts, programs):
    if not counts:
        return
    print(f"\n{title}\n{'steps':>6} {'programs':>8}  op: reason")
    for key, count in sorted(counts.items(), key=lambda item: (-len(programs[item[0]]), item[0])):
        op, reason = key
        words = reason if reason.startswith(op + ":") else f"{op}: {reason}" if op else reason
        print(f"{count:6} {len(programs[key]):8}  {words}  e.g. {sorted(programs[key])[0]}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], epilog="See docs/kernels.md.")
    parser.add_argument("files", nargs="*", help="programs or folders (default: the corpora)")
    parser.add_argument("--tokamak", default=ROOT / "build/bin/tokamak", help="the program (default: build/bin/tokamak)")
    parser.add_argument("--target", default="cpu", help="cpu (the default) or cuda")
    parser.add_argument("--strict", action="store_true", help="exit 1 when something falls back")
    parser.add_argument("--op", help="only host steps of this op, with every program")
    parser.add_argument("--filter", default="", help="only programs whose path holds this text")
    parser.add_argument("--json", help="write {program: [[op, reason], ...]} to this file")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    return parser.parse_args()


def main():
    args = parse_arguments()
    files = nvrtc_kernels.named_files(args.files) if args.files else nvrtc_kernels.corpus_files()
    files = [(name, path) for name, path in files if args.filter in name]
    if not files:
        print("skipped: there are no corpora (TOKAMAK_CORPUS says where they are)")
        return SKIPPED
    begin = time.time()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        found = list(pool.map(lambda file: steps_of(args.tokamak, file[1], args.target), files))
    counts = [collections.Counter(), collections.Counter()]
    programs = collections.defaultdict(set)
    died, fallen = 0, set()
    for (name, _), (steps, error) in zip(files, found):
        if error:
            died += 1
            print(f"FAILED {name}: {error}")
        for key in steps:
            if args.op is not None and key[0] != args.op:
                continue
            counts[is_by_meaning(*key)][key] += 1
            programs[key].add(name)
            if not is_by_meaning(*key):
                fallen.add(name)
    print_table("left to the interpreter", counts[0], programs)
    if args.op is not None:
        print("\n" + "\n".join(sorted(fallen)))
    print_table("the host's by their meaning", counts[1], programs)
    if args.json:
        Path(args.json).write_text(json.dumps({name: steps for (name, _), (steps, _) in zip(files, found)}, indent=1))
    print(f"\n{len(files)} programs, {len(fallen)} of them fall back, in {sum(counts[0].values())} steps; {time.time() - begin:.0f} s")
    print(f"tally: {len(files) - died - len(fallen)} passed, {died + (len(fallen) if args.strict else 0)} failed, "
          f"{0 if args.strict else len(fallen)} skipped")
    return 1 if died or (args.strict and fallen) else 0


if __name__ == "__main__":
    sys.exit(main())
