#!/usr/bin/env python3
"""Fails if a file is not formatted as clang-format 14 formats it. With --fix it is rewritten instead.
Tables (.def) are aligned by hand and left alone. Without clang-format 14 the check is skipped."""
import re
import shutil
import subprocess
import sys

import tree


def find_clang_format():
    """clang-format of version 14: another version formats differently."""
    for name in ("clang-format-14", "clang-format"):
        path = shutil.which(name)
        if path and re.search(r"version 14\.", subprocess.run([path, "--version"], capture_output=True, text=True).stdout):
            return path
    return None


def main():
    args = tree.arguments(__doc__, fix="rewrite the files")
    tool = find_clang_format()
    if not tool:
        print("skipped: clang-format 14 is not here (Debian, Ubuntu: 'clang-format-14')")
        return tree.SKIPPED
    files = tree.sources(args.root)
    if not files:
        return tree.report("format", 0, [])
    style = f"--style=file:{args.root}/.clang-format"
    mode = ["-i"] if args.fix else ["--dry-run"]
    result = subprocess.run([tool, style, *mode, *(path.relative_to(args.root) for path in files)],
                            cwd=args.root, capture_output=True, text=True)
    wrong = sorted(set(re.findall(r"^(.+?:\d+):\d+: \w+: code should be", result.stderr, re.M)))
    first = {}
    for location in wrong:
        path, _, line = location.rpartition(":")
        first[path] = min(int(line), first.get(path, 1 << 30))
    errors = [f"{path}:{line}: not as clang-format writes it; tools/check_format.py --fix fixes it"
              for path, line in sorted(first.items())]
    if result.returncode and not errors:
        errors = [result.stderr.strip()]
    return tree.report("format", len(files), errors)


if __name__ == "__main__":
    sys.exit(main())
