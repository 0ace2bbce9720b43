"""Selects the files that the checks read. Shared by the check_*.py scripts."""
import argparse
import pathlib

FOLDERS = ("src", "include", "tests", "bench", "examples")
SKIPPED = 77  # ctest reads this exit code as "skipped"


def arguments(doc, **flags):
    """Parses --root and the given boolean flags (name=help)."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent,
                        help="the tree to look at (default: the one this script is in)")
    for name, text in flags.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)
    return parser.parse_args()


def sources(root, suffixes=(".h", ".cc"), folders=FOLDERS):
    """The C++ files below root, in a stable order."""
    return sorted(path for folder in folders for path in (root / folder).rglob("*")
                  if path.suffix in suffixes and path.is_file())


def report(check, looked_at, errors, warnings=()):
    """Prints findings and a closing line; returns the exit code."""
    for line in [*warnings, *errors]:
        print(line)
    print(f"{check}: {looked_at} files, {len(errors)} errors, {len(warnings)} warnings")
    return 1 if errors else 0
