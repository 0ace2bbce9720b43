#!/usr/bin/env python3
"""Fails on code that is too large: a .cc or .h of 1000 lines, a function over 80 lines or with more
than 6 parameters. Warns from 600 lines (.cc), 250 (.h), and 60 (function). A table belongs in a
.def file and may have any length.

A function that must be long gives the reason in a comment right above it: `// long: <reason>`.
With --all the warnings are listed too."""
import re
import sys

import tree

FILE_FAILS = 1000
FILE_WARNS = {".cc": 600, ".h": 250}
FUNCTION_FAILS = 80
FUNCTION_WARNS = 60
PARAMETERS_FAIL = 6

# Text that can hide a brace: comments, raw strings, strings, characters, preprocessor lines.
NOISE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^\s()\\]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-zA-Z_])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*", re.S | re.M)
TYPE = re.compile(r"^(?:template\s*<.*>\s*)?(?:typedef\s+)?(?:class|struct|union|enum)\b(?!.*\)\s*(?:const\s*)?$)", re.S)
NAME = re.compile(r"(~?[\w:]+|operator\s*[^\s\w(]+|operator\s*\(\))\s*\(")


def blank(match):
    """Blanks with the same line structure, so that positions stay valid; a literal still counts as one token."""
    text = re.sub(r"[^\n]", " ", match[0])
    return text if match[0][0] in "/# \t" else '"' + text[1:]


def parameters(head):
    """The number of parameters of the function with this head; 0 if unknown."""
    name = NAME.search(head)
    if not name:
        return 0
    depth, angle, count, seen = 1, 0, 0, False
    for char in head[name.end():]:
        depth += (char in "([{") - (char in ")]}")
        if depth == 0:
            break
        angle += (char == "<") - (char == ">" and angle > 0)
        count += char == "," and depth == 1 and angle == 0
        seen |= not char.isspace()
    return count + 1 if seen else 0


def functions(text):
    """Yields (name, head line, end line, parameters) of every function body at namespace or class level."""
    code = NOISE.sub(blank, text)
    stack = []  # of (kind, head start, name, parameters)
    start = 0  # start of the current statement
    parens = 0
    for at in (match.start() for match in re.finditer(r"[{}();]", code)):
        char = code[at]
        if char in "()":
            parens += 1 if char == "(" else -1
            continue
        outside = not stack or stack[-1][0] in ("namespace", "type")
        head = code[start:at].strip()
        if char == "{":
            head = re.sub(r"^(?:(?:public|private|protected)\s*:\s*)+", "", head)
            if not outside or parens > 0:
                kind = "block"
            elif re.match(r"(?:inline\s+)?namespace\b|extern\s*\"", head):
                kind = "namespace"
            elif TYPE.match(head):
                kind = "type"
            elif "(" in head and not re.search(r"(?<![=!<>])=(?!=)\s*$|[\w>]\s*=\s*[^=(]*$", head):
                # `: member_{value}` in a constructor's initializer list is a short block of the same statement.
                kind = "member" if re.search(r"\)\s*:\s*[^:{}]*\w\s*$|,\s*\w+\s*$", head) else "function"
            else:
                kind = "block"
            begin = start + len(code[start:at]) - len(code[start:at].lstrip())
            name = NAME.search(head)
            stack.append((kind, begin, name[1] if name else "?", parameters(head) if kind == "function" else 0, parens))
            parens = 0
            if kind != "member":
                start = at + 1
        elif char == "}" and stack:
            kind, begin, name, count, parens = stack.pop()
            if kind == "function":
                yield name, code.count("\n", 0, begin) + 1, code.count("\n", 0, at) + 1, count
            if kind != "member" and parens == 0:
                start = at + 1
        elif char == ";" and parens == 0:
            start = at + 1


def main():
    args = tree.arguments(__doc__, all="list the warnings too")
    files = tree.sources(args.root)
    errors, warnings = [], []
    for path in files:
        shown = path.relative_to(args.root)
        text = path.read_text()
        lines = text.splitlines()
        if len(lines) >= FILE_FAILS:
            errors.append(f"{shown}:1: {len(lines)} lines; {FILE_FAILS} is the limit: split it by noun, tables go to a .def")
        elif len(lines) > FILE_WARNS[path.suffix]:
            warnings.append(f"{shown}:1: {len(lines)} lines; look twice over {FILE_WARNS[path.suffix]}")
        for name, begin, end, count in functions(text):
            size = end - begin + 1
            excused = begin > 1 and re.match(r"\s*// long: \S", lines[begin - 2])
            if size > FUNCTION_FAILS and not excused:
                errors.append(f"{shown}:{begin}: {name} has {size} lines; {FUNCTION_FAILS} is the limit")
            elif size > FUNCTION_WARNS:
                warnings.append(f"{shown}:{begin}: {name} has {size} lines; look twice over {FUNCTION_WARNS}")
            if count > PARAMETERS_FAIL:
                errors.append(f"{shown}:{begin}: {name} takes {count} parameters; {PARAMETERS_FAIL} is the limit")
    code = tree.report("sizes", len(files), errors, warnings if args.all else ())
    if warnings and not args.all:
        print(f"sizes: {len(warnings)} places are worth a second look; tools/check_sizes.py --all lists them")
    return code


if __name__ == "__main__":
    sys.exit(main())
