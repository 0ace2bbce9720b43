#!/usr/bin/env python3
"""Fails on a numeric literal that may decide a plan or a kernel (in FOLDERS) and says neither what it counts nor where it comes
from. Unit tests are not read.

A literal needs no name if it is 0, 1 or 2, or if it is 4, 8, 16, 32 or 64 on a line that mentions bits, bytes or lanes: a width.
Any other literal belongs into a named constant (`constexpr ... kName = ...`), and the comment of that constant states a unit
(UNITS) and a source (SOURCES). The comment is behind the constant, or above it and the constants that follow without a blank
line.

tools/literals.txt lists the literals and constants that do not comply yet, with their number per file. The list may only
shrink: --update removes what is gone, and adds nothing."""
import collections
import re
import sys

import check_sizes
import tree

FOLDERS = ("src/gen", "src/fusion", "src/cost", "src/lower", "src/passes/target", "src/xla_rules")
# Not read: the description of a machine with the defaults of the entries of machine files, and what measures and writes them.
MACHINE_FILES = {f"src/cost/{name}" for name in ("machine.h", "rates.h", "rates.cc", "json.cc", "fit.cc", "calibrate.cc", "calibrate_kernels.cc")}
STORED = "tools/literals.txt"
PLAIN = {0, 1, 2}
WIDTHS = {4, 8, 16, 32, 64}
WIDTH_WORDS = re.compile(r"bits|bytes|lanes", re.I)
NUMBER = re.compile(r"(?<![\w.'])(?:0[xX][0-9a-fA-F'.]+(?:[pP][+-]?\d+)?|(?:\d[\d']*)?\.?\d[\d']*\.?(?:[eE][+-]?\d+)?)(?:[uUlLfFzZ]*)(?![\w.])")
CONSTANT = re.compile(r"\bconstexpr\b[^;{}()=]*?\bk[A-Z]\w*\s*(?:\[[^\]]*\]\s*)*[={]")
NAME = re.compile(r"\b(k[A-Z]\w*)\s*(?:\[[^\]]*\]\s*)*[={]")
UNITS = re.compile(
    r"\b(bytes?|KiB|MiB|bits?|elements?|rows?|columns?|sides?|threads?|warps?|lanes?|registers?|values?|instructions?|ops?|operations?"
    r"|multiplications?|tiles?|results?|blocks?|panels?|stages?|iterations?|groups?|kernels?|launches|moves?|regions?|roots?|inputs?"
    r"|operands?|arrays?|words?|lines?|digits?|tasks?|vectors?|fragments?|points?|steps?|sums?|trips?|slices?|copies|nodes?|plans?"
    r"|entries|dimensions?|loads?|stores?|branches|us|ns|ms|microseconds|ratio|fraction|multiple|factor|times|percent|depth|stride"
    r"|strides|exponent|count|size|length|width|conditions?|taps?|products?|names?|levels?|distance)\b|%", re.I)
SOURCES = re.compile(r"\b(chosen|hand-tuned|measured|hardware|guide|data sheet|PTX|ISA|IEEE|definition|structure)\b|docs/", re.I)


def value(text):
    text = text.replace("'", "").rstrip("uUlLzZ")
    return float.fromhex(text) if text[:2] in ("0x", "0X") else float(text.rstrip("fF"))


def end_of(code, begin):
    """The end of the statement that begins here: its semicolon outside of braces."""
    depth = 0
    for at in range(begin, len(code)):
        depth += (code[at] in "{(") - (code[at] in "})")
        if code[at] == ";" and depth == 0:
            return at
    return len(code)


def comment_of(lines, first, last, constant_lines):
    """The comments behind the lines first to last (from 0), and above them and the constants around them."""
    text = [line.partition("//")[2] for line in lines[first : last + 1]]
    at = first - 1
    while at >= 0 and (lines[at].lstrip().startswith("//") or at in constant_lines):
        text.append(lines[at].partition("//")[2])
        at -= 1
    return " ".join(text)


def offences(text):
    """Yields (line, name): the literals without a name, and the constants without a unit or a source."""
    code, lines = check_sizes.NOISE.sub(check_sizes.blank, text), text.splitlines()
    spans = [(match.start(), end_of(code, match.end() - 1)) for match in CONSTANT.finditer(code)]

    def line_of(at):
        return code.count("\n", 0, at)

    constant_lines = {line for begin, end in spans for line in range(line_of(begin), line_of(end) + 1)}
    for begin, end in spans:
        if all(value(number[0]) in PLAIN for number in NUMBER.finditer(code, begin, end)):
            continue
        comment = comment_of(lines, line_of(begin), line_of(end), constant_lines)
        if not (UNITS.search(comment) and SOURCES.search(comment)):
            yield line_of(begin) + 1, NAME.search(code, begin, end + 1)[1]
    for number in NUMBER.finditer(code):
        if value(number[0]) in PLAIN or any(begin <= number.start() < end for begin, end in spans):
            continue
        line = line_of(number.start())
        if value(number[0]) in WIDTHS and WIDTH_WORDS.search(code.splitlines()[line]):
            continue
        yield line + 1, number[0]


def read(path):
    """The stored list: {(file, name): count}."""
    stored = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        if line and not line.startswith("#"):
            file, name, count = line.split()
            stored[file, name] = int(count)
    return stored


def write(path, counts):
    head = "# Literals and constants that state no unit or source (tools/check_literals.py): file, name, number.\n"
    path.write_text(head + "".join(f"{file} {name} {count}\n" for (file, name), count in sorted(counts.items())))


def main():
    args = tree.arguments(__doc__, update="remove from the list what is gone")
    files = [path for path in tree.sources(args.root, folders=FOLDERS) if not path.name.endswith("_test.cc") and path.relative_to(args.root).as_posix() not in MACHINE_FILES]
    found = collections.defaultdict(list)
    for path in files:
        shown = path.relative_to(args.root).as_posix()
        for line, name in offences(path.read_text()):
            found[shown, name].append(line)
    stored = read(args.root / STORED)
    if args.update:
        kept = {key: min(count, len(found[key])) for key, count in stored.items() if key in found}
        write(args.root / STORED, kept)
        stored = kept
    errors = []
    for (file, name), at in sorted(found.items()):
        if len(at) > stored.get((file, name), 0):
            what = "states no unit or no source (Chosen, hardware, measured ...)" if name.startswith("k") else "has no name"
            errors += [f"{file}:{line}: {name} {what}" for line in at]
    errors += [f"{STORED}: {file} has fewer {name} than listed: tools/check_literals.py --update"
               for (file, name), count in sorted(stored.items()) if len(found.get((file, name), ())) < count]
    return tree.report("literals", len(files), errors)


if __name__ == "__main__":
    sys.exit(main())
