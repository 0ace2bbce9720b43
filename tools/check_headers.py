#!/usr/bin/env python3
"""Compiles headers of src/ alone, each twice in an otherwise empty file: one that is not self-contained fails.

    tools/check_headers.py                  a tenth of them: those changed last and their includers (ctest name check.headers)
    tools/check_headers.py --all            all of them, like the dev build in scripts/nightly
    tools/check_headers.py ir/shape.h       some

Only the compiler's front end runs, with the flags of the header's folder in compile_commands.json of --build."""
import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = 77
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)


def changes(root):
    """Headers of src/, each once: those with edits, then those of the last commit, the one before it ... None without git."""
    listed = []
    for arguments in (["ls-files", "--modified", "--others", "--exclude-standard"], ["log", "--format=", "--name-only", "--relative"]):
        done = subprocess.run(["git", *arguments, "--", "*.h"], cwd=root / "src", capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return []
        listed += done.stdout.split("\n")
    return list(dict.fromkeys(Path(name) for name in listed if name))


def latest(headers, root):
    """A tenth: half of it the headers changed last, then headers that include those. Deterministic for a checkout."""
    place = {header: i for i, header in enumerate(changes(root))}
    ranked = sorted(headers, key=lambda h: (place.get(h, len(place)), zlib.crc32(str(h).encode())))
    count = -(-len(headers) // 10)
    changed = ranked[:-(-count // 2)]
    names = {str(h) for h in changed}
    includers = [h for h in ranked if not names.isdisjoint(INCLUDE.findall((root / "src" / h).read_text()))]
    return list(dict.fromkeys([*changed, *includers, *ranked]))[:count]


def commands(build):
    """{library: the command that compiles one of its files}."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if library := re.search(r" -o CMakeFiles/(tok_\w+)\.dir/", entry["command"]):
            found.setdefault(library[1], shlex.split(entry["command"]))
    return found


def front_end(command):
    """The command without its cache, its files and the precompiled header."""
    kept, skip = [], False
    start = next(i for i, word in enumerate(command) if re.search(r"(\+\+|clang|gcc)(-[\d.]+)?$", word))
    for word in command[start:]:
        if skip:
            skip = False
        elif word in ("-o", "-include"):
            skip = True
        elif word not in ("-c", "-Winvalid-pch") and not word.endswith((".cc", ".cxx")):
            kept.append(word)
    return [*kept, "-O0", "-fsyntax-only", "-Wno-unused-function", "-x", "c++", "-"]


def folder_of(header, libraries):
    """The library of the innermost folder that has one."""
    parts = header.parts[:-1]
    for end in range(len(parts), 0, -1):
        if (name := "tok_" + "_".join(parts[:end])) in libraries:
            return libraries[name]
    return None


def check(header, libraries, root):
    command = folder_of(header, libraries)
    if command is None:
        return "" if header.parts[0] == "backend" else f"{header}: nothing of its folder is compiled"  # a backend may be left out
    text = f'#include "{header}"  // once\n#include "{header}"  // twice\n'
    done = subprocess.run(front_end(command), input=text, capture_output=True, text=True, cwd=root)
    return "" if done.returncode == 0 else f"{header} does not compile alone:\n{done.stderr[:2000]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headers", nargs="*", type=Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("-j", type=int, default=os.cpu_count())
    args = parser.parse_args()
    if not (args.build / "compile_commands.json").exists():
        print(f"skipped: {args.build} is not configured")
        return SKIPPED
    headers = args.headers or sorted(p.relative_to(args.root / "src") for p in (args.root / "src").rglob("*.h"))
    if not args.all and not args.headers:
        headers = latest(headers, args.root)
    libraries = commands(args.build)
    with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        errors = [error for error in pool.map(lambda h: check(h, libraries, args.root), headers) if error]
    print(*errors, sep="\n", end="\n" if errors else "")
    print(f"tally: {len(headers) - len(errors)} passed, {len(errors)} failed, 0 skipped")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
