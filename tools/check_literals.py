#!/usr/bin/env python3
"""Fails on a numeric literal that may decide a plan or a kernel (in FOLDERS) and says neither what it counts nor where it comes
from. Unit tests are not read.

A literal needs no name if it is
- 0 or 1;
- 2, unless it decides (below);
- 4, 8, 16, 32 or 64 as a width. It is an argument of Lanes(), or in one condition or statement with BytesOf() or a name that
  contains "bits". `&&`, `||`, `;` and braces end a condition. Or it is multiplied with, divided by or equal to a name that
  contains "bytes".
Any other literal belongs into a named constant (`constexpr ... kName = ...` or `static const ... kName = ...`).

In gen and fusion, a 2 decides, and needs a name, if it is
- multiplied with or divided by a machine resource (cores, rates, Lanes()), a budget or a named constant;
- a factor or divisor in a comparison by <, <=, > or >= (`2 * blocks < alone`), or one side of `<= 2`, `>= 2` or `> 2`;
- an argument of std::min, std::max or std::clamp (`min(lanes, 2)`);
- one alternative of `?:`, unless its condition asks for complex numbers or wide words, which have two parts, or it is the number
  of an operand;
- assigned to a variable named unroll, vector, lanes, stages or threads.
Other uses are structural. Such are a loop that doubles or halves (its statement has `*= 2` or `/= 2`; its condition has no
resource), a midpoint, an enumerator, an index and half of a numeric limit. A pair is, too: twice the bound of a for loop,
operand_count() / 2, `% 2` and the parity of a double buffer, a count that is equal to 2 or below 2.

The comment of a constant states a unit (UNITS) and a source (SOURCES), and after "Chosen" a reason: `Chosen: more registers would
spill.` The comment is behind the constant, or above it and the constants that follow without a blank line. This holds for
- constants with a value other than 0 and 1 (a negative value is a mark, not a quantity);
- members of a struct in a header whose name ends in Options, Schedule or Limits, if their default is a number other than 0.
  There a unit and a source or reason suffice in the comment of the struct.

A fact has one constant: two constants of one name in two files, or of one value and one comment, are an error.

tools/literals.txt lists the literals and constants that do not comply yet, with their number per file. The list may only
shrink: --update removes what is gone, and adds nothing."""
import collections
import re
import sys

import check_sizes
import tree

FOLDERS = ("src/gen", "src/fusion", "src/cost", "src/lower", "src/passes/target", "src/xla_rules")
PAIR_FOLDERS = ("src/gen/", "src/fusion/")
# Not read: the description of a machine with the defaults of the entries of machine files, and what measures and writes them.
MACHINE_FILES = {f"src/cost/{name}" for name in ("machine.h", "rates.h", "rates.cc", "json.cc", "fit.cc", "calibrate.cc", "calibrate_kernels.cc")}
STORED = "tools/literals.txt"
PLAIN = {0, 1}
PAIR = 2
WIDTHS = {4, 8, 16, 32, 64}
NUMBER = re.compile(r"(?<![\w.'])(?:0[xX][0-9a-fA-F'.]+(?:[pP][+-]?\d+)?|(?:\d[\d']*)?\.?\d[\d']*\.?(?:[eE][+-]?\d+)?)(?:[uUlLfFzZ]*)(?![\w.])")
CONSTANT = re.compile(r"\b(?:constexpr|static\s+const)\b[^;{}()=]*?\bk[A-Z]\w*\s*(?:\[[^\]]*\]\s*)*[={]")
NAME = re.compile(r"\b(k[A-Z]\w*)\s*(?:\[[^\]]*\]\s*)*[={]")
STRUCT = re.compile(r"\bstruct\s+(\w*(?:Options|Schedule|Limits))\s*(?:final\s*)?\{")
MEMBER = re.compile(r"\b(\w+)\s*=\s*([^,;{}]+)(?=[,;])")
UNITS = re.compile(
    r"\b(bytes?|KiB|MiB|bits?|elements?|rows?|columns?|sides?|threads?|warps?|lanes?|registers?|values?|instructions?|ops?|operations?"
    r"|multiplications?|tiles?|results?|blocks?|panels?|stages?|iterations?|groups?|kernels?|launches|moves?|regions?|roots?|inputs?"
    r"|operands?|arrays?|words?|lines?|digits?|tasks?|vectors?|fragments?|points?|steps?|sums?|trips?|slices?|copies|nodes?|plans?"
    r"|entries|dimensions?|loads?|stores?|branches|us|ns|ms|microseconds|ratio|fraction|multiple|factor|times|percent|depth|stride"
    r"|strides|exponent|count|size|length|width|conditions?|taps?|products?|names?|levels?|distance)\b|%", re.I)
CHOSEN = re.compile(r"\bchosen\b", re.I)
REASON = re.compile(r"\bchosen\b[^.;]{0,60}?(?::|\bso that\b|\bbecause\b)\s*\w\S*\s+\S+\s+\S+", re.I)
SOURCES = re.compile(r"\b(hand-tuned|measured|hardware|guide|data sheet|PTX|ISA|IEEE|definition|structure|counted|estimates?)\b|docs/", re.I)
# What ends a condition or a statement, for the literals in it.
ENDS = re.compile(r"&&|\|\||[;{}]")
CLOSED_IF = re.compile(r"\b(?:if|while) \((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\)(?= *\w)")
COMPARISON = re.compile(r"(?<![<>=!-])(?:<=|>=|<|>)(?![<>=])")
RESOURCE = r"(?:[\w.>()-]*?\b(?:cores|rates_?\.\w+|budget\w*)\b|[\w.]*\bLanes\(|k[A-Z]\w*\b)"


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
    above = []
    at = first - 1
    while at >= 0 and (lines[at].lstrip().startswith("//") or at in constant_lines):
        above.append(lines[at].partition("//")[2])
        at -= 1
    return " ".join(above[::-1] + text)


def piece_around(code, begin, end):
    """The condition or statement around a literal, and the literal's place in it."""
    first = max((match.end() for match in ENDS.finditer(code, max(0, begin - 400), begin)), default=max(0, begin - 400))
    ends = ENDS.search(code, end)
    return " ".join(code[first:begin].split()) + " ", " " + " ".join(code[end : ends.start() if ends else len(code)].split())


def is_width(before, after):
    if re.search(r"\bLanes\((?:[^()]|\([^()]*\))*$", before):
        return True
    if re.search(r"bits|\bBytesOf\(", before + after, re.I):
        return True
    return bool(re.search(r"\w*bytes\w*\)? *(?:[*/]|==|!=) *$", before, re.I) or re.match(r" *(?:[*]|==|!=) *[\w.>-]*bytes", after, re.I))


def in_doubling_loop(code, at):
    """Whether a statement around this place is a loop that doubles or halves something."""
    for loop in re.finditer(r"\b(?:while|for)\s*\(", code[max(0, at - 500) : at]):
        begin = max(0, at - 500) + loop.start()
        depth, close = 0, loop.end()
        for close in range(begin + loop[0].index("("), len(code)):
            depth += (code[close] in "(") - (code[close] in ")")
            if depth == 0:
                break
        end = end_of(code, close + 1)
        if begin < at <= end and re.search(r"[*/]=\s*2\b", code[begin:end]):
            return True
    return False


def decides(code, begin, end):
    """Whether a 2 decides: the rules above."""
    before, after = piece_around(code, begin, end)
    before = CLOSED_IF.sub("", before)
    if re.search(r"\bk[A-Z]\w* = $", before) or "operand_count" in before + after:
        return False
    if re.search(r"= [\w.]+ / $", before) and in_doubling_loop(code, begin):
        return False
    if re.fullmatch(r" *\w+ < ", before) and re.search(r"\bfor \([^;{}]*;[^;{}]*$", code[max(0, begin - 200) : begin]):
        return False
    joined = re.search(r"[*/%] *\(?$", before) or re.match(r" *[*/]", after)
    if re.search(RESOURCE + r"\)? *[*/] *$", before) or re.match(r" *\* *\(?(?:static_cast<\w+>\()?" + RESOURCE, after):
        return not re.search(r"numeric_limits|% *\($", before[-60:])
    if in_doubling_loop(code, begin) or re.search(r"numeric_limits|INT64_M|% *\(?$", before[-60:]):
        return False
    if re.search(r"(?<![<>=!-])(?:<=|>=|>) *$", before) and re.match(r" *(?:$|[;,)?])", after):
        return not re.search(r"\boperand\($|->$", before)
    if joined and COMPARISON.search(re.sub(r"<[\w:]*>|->|<<|>>", "", before + after)) and not re.search(r"[!=]=", before + after):
        return True
    if re.search(r"\b(?:min|max|clamp)(?:<\w+>)?\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*, *$", before) and re.match(r" *[,)]", after):
        return True
    if re.search(r"[?:] *$", before) and re.match(r" *(?:[:;),]|$)", after) and not re.search(r"complex|IsWide|is_wide|\boperands?[(\[]|Op::k\w+ *\? *$", before, re.I):
        return "?" in before[-120:] or bool(re.match(r" *:", after))
    return bool(re.search(r"\b(?:unroll|vector|lanes|stages|threads)_? = $", before))


def explains(comment):
    """Whether a comment states a unit, and a source or a reason."""
    chosen = CHOSEN.findall(comment)
    has_source = len(REASON.findall(comment)) == len(chosen) if chosen else SOURCES.search(comment)
    return bool(UNITS.search(comment) and has_source)


def members(path, code, lines):
    """Yields (span, line, name) of the members with a default; the name is missing if a comment explains it."""
    if path.suffix != ".h":
        return
    for struct in STRUCT.finditer(code):
        end = end_of(code, struct.end() - 1)
        first = code.count("\n", 0, struct.start())
        of_struct = comment_of(lines, first, first, set())
        for member in MEMBER.finditer(code, struct.end(), end):
            numbers = list(NUMBER.finditer(member[2]))
            if not numbers or all(value(number[0]) == 0 for number in numbers) or "-" in member[2] or "(" in code[member.start() - 1 : member.start()]:
                continue
            line = code.count("\n", 0, member.start())
            known = explains(comment_of(lines, line, line, set())) or explains(of_struct)
            yield member.span(), line + 1, None if known else f"{struct[1]}::{member[1]}"


def constants(text):
    """Yields (line, [names], [values], declaration, comment) of the named constants."""
    code, lines = check_sizes.NOISE.sub(check_sizes.blank, text), text.splitlines()
    spans = [(match.start(), end_of(code, match.end() - 1)) for match in CONSTANT.finditer(code)]

    def line_of(at):
        return code.count("\n", 0, at)

    constant_lines = {line for begin, end in spans for line in range(line_of(begin), line_of(end) + 1)}
    for begin, end in spans:
        values = [value(number[0]) for number in NUMBER.finditer(code, begin, end) if not code[:number.start()].rstrip().endswith("-")]
        yield line_of(begin) + 1, NAME.findall(code, begin, end + 1), values, code[begin:end], comment_of(lines, line_of(begin), line_of(end), constant_lines)


def offences(path, text, pairs=True):
    """Yields (line, name): the literals without a name, and the constants without a unit, a source or a reason."""
    code, lines = check_sizes.NOISE.sub(check_sizes.blank, text), text.splitlines()
    spans = [(match.start(), end_of(code, match.end() - 1)) for match in CONSTANT.finditer(code)]
    for line, names, values, declaration, comment in constants(text):
        if re.search(r"\bconstexpr\b[^=]*?\bk[A-Z]\w*\[\w*\]\s*[={].*=", declaration) or all(number in PLAIN for number in values):
            continue
        if not explains(comment):
            yield line, names[0]
    for span, line, name in members(path, code, lines):
        spans.append(span)
        if name:
            yield line, name
    for number in NUMBER.finditer(code):
        if value(number[0]) in PLAIN or any(begin <= number.start() < end for begin, end in spans):
            continue
        begin, end = number.span()
        if value(number[0]) == PAIR and not (pairs and decides(code, begin, end)):
            continue
        if value(number[0]) in WIDTHS and is_width(*piece_around(code, begin, end)):
            continue
        yield code.count("\n", 0, begin) + 1, number[0]


def repeated(files):
    """Errors for facts with two constants. `files`: (shown path, text)."""
    by_name, by_fact = {}, {}
    for shown, text in files:
        for line, names, values, declaration, comment in constants(text):
            if not values or all(number in PLAIN for number in values):
                continue
            where = f"{shown}:{line}"
            for name in names:
                if by_name.setdefault(name, shown) != shown:
                    yield f"{where}: {name} is also defined in {by_name[name]}: export one from a header"
            fact = (declaration.partition("=")[2].strip(), " ".join(comment.split()))
            if len(names) == 1 and fact[1] and by_fact.setdefault(fact, shown) != shown:
                yield f"{where}: {names[0]} has the value and comment of a constant in {by_fact[fact]}: export one from a header"


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
    paths = [path for path in tree.sources(args.root, folders=FOLDERS) if not path.name.endswith("_test.cc") and path.relative_to(args.root).as_posix() not in MACHINE_FILES]
    files = [(path.relative_to(args.root).as_posix(), path.read_text()) for path in paths]
    found = collections.defaultdict(list)
    for path, (shown, text) in zip(paths, files):
        for line, name in offences(path, text, shown.startswith(PAIR_FOLDERS)):
            found[shown, name].append(line)
    stored = read(args.root / STORED)
    if args.update:
        kept = {key: min(count, len(found[key])) for key, count in stored.items() if key in found}
        write(args.root / STORED, kept)
        stored = kept
    errors = list(repeated(files))
    for (file, name), at in sorted(found.items()):
        if len(at) > stored.get((file, name), 0):
            what = "has no name" if name[0].isdigit() or name[0] == "." else "states no unit, or no source (hardware, measured ..., or Chosen: and a reason)"
            errors += [f"{file}:{line}: {name} {what}" for line in at]
    errors += [f"{STORED}: {file} has fewer {name} than listed: tools/check_literals.py --update"
               for (file, name), count in sorted(stored.items()) if len(found.get((file, name), ())) < count]
    return tree.report("literals", len(files), errors)


if __name__ == "__main__":
    sys.exit(main())
