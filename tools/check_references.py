#!/usr/bin/env python3
"""Fails if a file refers to something outside this repository: a folder next to the checkout, an external page, the number
of an issue. Only .ci/run may name the location of the corpora on a machine."""
import os
import re
import sys

import tree

ALLOWED = {".ci/run", "LICENSE", "tools/check_references.py", "tools/checks_test.py"}
LEFT_OUT = re.compile(r"^(build.*|\.git|\.venv|\.cache|__pycache__|\.pytest_cache|\.ruff_cache)$")
SUFFIXES = {"", ".cc", ".h", ".cu", ".def", ".cmake", ".py", ".sh", ".md", ".txt", ".json", ".toml", ".yaml", ".hlo", ".mlir", ".kernel", ".patch"}
FOREIGN = ((re.compile(r"(?:\.\.|work)/shared\b|\bshared/(?:bench|corpus|facts|fuzz|tools)\b"), "a folder that is not in this repository"),
           (re.compile(r"\bdesign\.md\b|\bstate-of-the-art\b"), "a page that is not in this repository; docs/ should say it"),
           (re.compile(r"\bissues? #?\d+|\(#\d+\)|\bthe [A-Z]\w* issue\b"), "an issue; say what it asks for"))


def files(root):
    """Every text file below root, except built and downloaded ones."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not LEFT_OUT.match(name))
        for name in sorted(names):
            path = root.__class__(folder) / name
            if path.suffix in SUFFIXES and path.is_file() and path.relative_to(root).as_posix() not in ALLOWED:
                yield path


def findings(path, shown):
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        return
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, what in FOREIGN:
            if found := pattern.search(line):
                yield f"{shown}:{number}: '{found[0]}' is {what}"


def main():
    args = tree.arguments(__doc__)
    looked_at = list(files(args.root))
    errors = [line for path in looked_at for line in findings(path, path.relative_to(args.root))]
    return tree.report("references", len(looked_at), errors)


if __name__ == "__main__":
    sys.exit(main())
