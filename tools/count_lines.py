#!/usr/bin/env python3
"""Counts the lines of code of each folder of src, now and at a git revision.

    tools/count_lines.py             now
    tools/count_lines.py BASE        now, at BASE, and what was removed and added since

Blank lines, comments and unit tests do not count. A line of BASE that is now in another C++ file of this repository has moved:
it is neither removed nor added. Lines are compared without their indentation."""
import argparse
import collections
import io
import pathlib
import re
import subprocess
import sys
import tarfile

import check_sizes
import tree

SUFFIXES = (".h", ".cc", ".def")


def code_lines(text):
    """The lines of a C++ file that are neither blank nor comments."""
    text = check_sizes.NOISE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]) if match[0][0] == "/" else match[0], text)
    return [line for line in (line.strip() for line in text.splitlines()) if line]


def folder_of(path):
    """The layer of a file of src, such as `ir` or `backend/cpu`; None for unit tests and files outside src."""
    parts = pathlib.PurePosixPath(path).parts
    if parts[0] != "src" or len(parts) < 3 or path.endswith("_test.cc"):
        return None
    return "/".join(parts[1:3]) if parts[1] == "backend" and len(parts) > 3 else parts[1]


def count(files):
    """Maps each folder to its lines, each with the number of times that it occurs."""
    folders = collections.defaultdict(collections.Counter)
    for path, text in files:
        folders[folder_of(path)].update(code_lines(text))
    return folders


def files_now(root):
    for path in tree.sources(root, SUFFIXES):
        yield path.relative_to(root).as_posix(), path.read_text()


def files_at(root, revision):
    def git(*command):
        return subprocess.run(["git", "-C", root, *command], capture_output=True, check=True).stdout

    folders = [name for name in git("ls-tree", "--name-only", revision).decode().split() if name in tree.FOLDERS]
    with tarfile.open(fileobj=io.BytesIO(git("archive", "--format=tar", revision, *folders))) as tar:
        for member in tar:
            if member.isfile() and member.name.endswith(SUFFIXES):
                yield member.name, tar.extractfile(member).read().decode()


def only_in_first(first, second):
    """Per folder, the number of lines of `first` for which `second` has no equal line left in any folder."""
    left = sum(second.values(), collections.Counter())
    rest = {}
    for folder, lines in first.items():  # lines that stayed in their folder come first
        same = lines & second.get(folder, collections.Counter())
        left -= same
        rest[folder] = lines - same
    alone = collections.Counter()
    for folder, lines in sorted(rest.items(), key=lambda item: str(item[0])):
        moved = lines & left
        left -= moved
        alone[folder] = (lines - moved).total()
    return alone


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", nargs="?", help="a git revision")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    args = parser.parse_args()
    now = count(files_now(args.root))
    if args.base is None:
        rows = {folder: (lines.total(),) for folder, lines in now.items() if folder}
        heads = ("now",)
    else:
        try:
            base = count(files_at(args.root, args.base))
        except subprocess.CalledProcessError as error:
            print(error.stderr.decode().strip(), file=sys.stderr)
            return 2
        removed, added = only_in_first(base, now), only_in_first(now, base)
        rows = {folder: (base[folder].total(), now[folder].total(), now[folder].total() - base[folder].total(), removed[folder], added[folder])
                for folder in {*base, *now} if folder}  # fmt: skip
        heads = ("before", "now", "difference", "removed", "added")
    print(f"{'folder':<16}" + "".join(f"{head:>12}" for head in heads))
    total = [sum(column) for column in zip(*rows.values())] or [0] * len(heads)
    for folder, row in [*sorted(rows.items()), ("src", total)]:
        print(f"{folder:<16}" + "".join(f"{number:>12}" for number in row))
    if args.base is not None:
        less = total[3] - total[4]
        print(f"{abs(less)} lines {'fewer' if less >= 0 else 'more'}, {100 * abs(less) / max(1, total[0]):.1f} % of {args.base}; moved lines do not count")
    return 0


if __name__ == "__main__":
    sys.exit(main())
