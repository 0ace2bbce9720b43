#!/usr/bin/env python3
"""Builds targets with Ninja and reports progress in readable lines.

usage: build.py FOLDER [-j N] [TARGET]...

On a terminal one line is rewritten; elsewhere a line is printed for every tenth. Each shows the fraction done and the estimated time left.
Compiler output is passed on. The exit code is Ninja's."""
import argparse
import os
import re
import subprocess
import sys
import time

STATUS = re.compile(r"^@(\d+)/(\d+)@ (.*)$")


def clock(seconds):
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def of(what):
    """The library or program that a step belongs to."""
    found = re.search(r"(?:CMakeFiles/|/)(\w+)\.dir/|(\S+)$", what)
    return (found[1] or os.path.basename(found[2])).removeprefix("tok_") if found else what


class Progress:
    def __init__(self, out, name):
        self.out, self.name, self.begin = out, name, time.monotonic()
        self.terminal, self.shown, self.done = out.isatty(), 0, 0

    def step(self, done, total, what):
        self.done = done
        spent = time.monotonic() - self.begin
        left = f", about {clock(spent / done * (total - done))} left" if done > 5 and done < total else ""
        line = f"{self.name}: {100 * done // total:3} % of {total} steps{left}"
        if self.terminal:
            print(f"\r\033[K{line}: {of(what)}", end="", file=self.out, flush=True)
        elif 10 * done // total > self.shown or done == total:
            self.shown = 10 * done // total
            print(line, file=self.out, flush=True)

    def say(self, text):
        print(f"\r\033[K{text}" if self.terminal else text, file=self.out, flush=True)

    def finish(self, code):
        if self.done:
            self.say(f"{self.name}: {'built' if code == 0 else 'FAILED'} after {clock(time.monotonic() - self.begin)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("-j", type=int, default=os.cpu_count())
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    args = parser.parse_intermixed_args()
    command = ["ninja", "-C", args.folder, "-j", str(args.j), *args.targets]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                               env={**os.environ, "NINJA_STATUS": "@%f/%t@ "})
    progress = Progress(sys.stdout, os.path.basename(os.path.abspath(args.folder)))
    for line in process.stdout:
        line = line.rstrip("\n")
        if found := STATUS.match(line):
            progress.step(int(found[1]), int(found[2]), found[3])
        elif line and not line.startswith(("ninja: Entering directory", "ninja: no work to do")):
            progress.say(line)
    code = process.wait()
    progress.finish(code)
    return code


if __name__ == "__main__":
    sys.exit(main())
