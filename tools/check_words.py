#!/usr/bin/env python3
"""Fails where a tracked file uses a word that tools/words.txt bans: the field has another one for it, which the message names."""
import re
import subprocess
import sys

import tree

LIST = "tools/words.txt"
# Texts of others, measured data, the list itself and its test.
LEFT_OUT = re.compile(r"^(LICENSE|THIRD_PARTY|tools/words\.txt|tools/checks_test\.py|docs/results/.*\.json|docs/results/.*\.svg|machines/raw/.*)$")


def rows(text):
    """(pattern, what to write instead) of each line of the list."""
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, use = line.split(" | use: ")
            yield re.compile(pattern, 0 if re.search(r"(?<!\\)[A-Z]", pattern) else re.IGNORECASE), use


def tracked(root):
    done = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True, text=True, check=False)
    return [name for name in done.stdout.split("\0") if name] if done.returncode == 0 else None


def candidates(root, names, banned):
    """The names of files that may hold a banned word: git looks for all of them at once, 20 times as fast as Python. All names if it was
    built without Perl's expressions."""
    patterns = [arg for pattern, _ in banned for arg in ("-e", pattern.pattern)]
    done = subprocess.run(["git", "-C", str(root), "grep", "-lzIiP", *patterns], capture_output=True, text=True, check=False)
    return done.stdout.split("\0") if done.returncode in (0, 1) else names


def findings(text, banned, shown):
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, use in banned:
            if found := pattern.search(line):
                yield f"{shown}:{number}: '{found[0]}': use {use}"


def main():
    args = tree.arguments(__doc__)
    names = tracked(args.root)
    if names is None:
        print(f"{args.root} is no git checkout: what is tracked is unknown")
        return tree.SKIPPED
    banned, errors, looked_at = list(rows((args.root / LIST).read_text())), [], 0
    suspects = set(candidates(args.root, names, banned))
    for name in names:
        if LEFT_OUT.match(name):
            continue
        if name not in suspects:
            looked_at += 1
            continue
        try:
            text = (args.root / name).read_text()
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # not text, or removed and not yet committed
        looked_at += 1
        errors += findings(text, banned, name)
    return tree.report("words", looked_at, errors)


if __name__ == "__main__":
    sys.exit(main())
