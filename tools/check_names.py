#!/usr/bin/env python3
"""Fails if two files of a folder of src/ define the same name in their anonymous namespaces: such files cannot be compiled
in one batch (TOK_UNITY). Functions may share a name if their parameters differ. Files must be formatted by clang-format: everything
in a namespace begins its line."""
import collections
import re
import sys

import check_sizes
import tree

LAYER = re.compile(r"^([a-z/]+):", re.M)
NAMESPACE = re.compile(r"(?:inline )?namespace\s*([\w:]*)\s*\{$")
TYPE = re.compile(r"(?:template <.*> )?(?:struct|class|union|enum class|enum)\s+(\w+)\b(?!\s*;)")
ENUM = re.compile(r"enum\s+\w+[^{]*\{([^}]*)\}", re.S)
CONSTANT = re.compile(r"(?:static |inline )*(?:constexpr|const)\b[^(]*?=|(?:static |inline )*(?:constexpr|const)\b[^(]*\{")
FUNCTION = re.compile(r"(?:template <[^{]*?>\s*)?(?:decltype\(auto\)\s+)?[\w:<>,\s*&\[\]]*?\b(\w+)\s*\(")


def statements(text):
    """(line, namespaces, statement) of everything in an anonymous namespace."""
    text = check_sizes.NOISE.sub(check_sizes.blank, text)
    names, held, depth = [], "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if depth == 0 and not held.strip():
            if opened := NAMESPACE.match(line.rstrip()):
                names.append(opened[1])
                continue
            if line.strip() == "}" and names:
                names.pop()
                continue
            first = number
        held += line + "\n"
        depth += line.count("{") - line.count("}")
        if depth == 0 and line.rstrip().endswith((";", "}")):
            if "" in names:
                yield first, "::".join(names), held.strip()
            held = ""


def types_of(parameters):
    """Parameters without their names and defaults."""
    depth, parts = 0, [""]
    for char in parameters:
        depth += (char in "<([{") - (char in ">)]}")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    bare = [re.sub(r"\s*=.*", "", part, flags=re.S).strip() for part in parts]
    return ",".join(re.sub(r"\s+", "", re.sub(r"(?<=[\s&*>])\w+$", "", part)) for part in bare)


def parameters(statement, begin):
    depth = 0
    for at in range(begin, len(statement)):
        depth += (statement[at] == "(") - (statement[at] == ")")
        if depth == 0:
            return statement[begin + 1 : at]
    return ""


def names(statement):
    """The names that a statement declares: (name, "" or the types of parameters)."""
    if statement.startswith("using "):  # a repeated using is harmless
        return
    if kind := TYPE.match(statement):
        yield kind[1], ""
        if plain := ENUM.match(statement):
            for name in re.findall(r"(?:^|,)\s*(\w+)", plain[1]):
                yield name, ""
    elif CONSTANT.match(statement):
        head = re.sub(r"\{.*\}", "{}", statement, flags=re.S)
        for name in re.findall(r"\b(k[A-Z]\w*)\s*(?:=|\[|\{)", head):
            yield name, ""
    elif made := FUNCTION.match(statement):
        yield made[1], f"({types_of(parameters(statement, made.end() - 1))})"


def findings(root, folder, others):
    """Findings of one library; `others` are the folders of libraries below it."""
    seen = collections.defaultdict(dict)
    for path in sorted((root / "src" / folder).rglob("*.cc")):
        shown = path.relative_to(root)
        if path.name == "main.cc" or any(shown.as_posix().startswith(f"src/{other}/") for other in others):
            continue
        kind = "test" if path.name.endswith("_test.cc") else "library"
        for line, where, statement in statements(path.read_text()):
            for name, types in names(statement):
                seen[kind, where, name, types].setdefault(shown, line)
    for (_, _, name, types), locations in seen.items():
        (first, at), *rest = locations.items()
        for shown, line in rest:
            yield f"{shown}:{line}: {name}{types} is also in {first}:{at}; name it after what it is of"


def main():
    args = tree.arguments(__doc__)
    folders = LAYER.findall((args.root / "tools/layers.txt").read_text())
    errors = [line for folder in folders for line in findings(args.root, folder, [f for f in folders if f.startswith(folder + "/")])]
    return tree.report("names", len(folders), errors)


if __name__ == "__main__":
    sys.exit(main())
