#!/usr/bin/env python3
"""Fails on style violations that can be checked automatically: a TODO, a file or folder named utils or
similar, a header without `#pragma once`, a slow standard header in a header, `using namespace`."""
import re
import sys

import tree

VAGUE = {"utils", "util", "common", "misc", "helpers", "helper", "service"}
SLOW = {"iostream", "regex", "filesystem", "ranges", "functional"}  # 0.3 to 0.8 s each in every includer (g++ 12)
TODO = re.compile(r"\b(TODO|FIXME|XXX)\b")
ANY = ((TODO, "do it, or say in docs/ what is left"),
       (re.compile(r"^\s*using namespace\b"), "name what you use, or qualify it"))


def findings(path, shown):
    """Yields one finding per violation in the file."""
    for word in {*shown.parts[:-1], shown.stem.removesuffix("_test")} & VAGUE:
        yield f"{shown}:1: '{word}' says nothing; name the file after what it holds"
    text = path.read_text()
    if path.suffix == ".h" and "#pragma once" not in text:
        yield f"{shown}:1: no #pragma once"
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, advice in ANY:
            if pattern.search(line):
                yield f"{shown}:{number}: {line.strip()[:60]}: {advice}"
        include = re.match(r"\s*#\s*include\s*<(\w+)>", line)
        if path.suffix == ".h" and include and include[1] in SLOW:
            yield f"{shown}:{number}: <{include[1]}> is slow to compile; keep it out of headers"


def main():
    args = tree.arguments(__doc__)
    files = tree.sources(args.root)
    errors = [line for path in files for line in findings(path, path.relative_to(args.root))]
    return tree.report("style", len(files), errors)


if __name__ == "__main__":
    sys.exit(main())
