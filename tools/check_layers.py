#!/usr/bin/env python3
"""Fails if a file of src/ includes a header of a layer that tools/layers.txt does not allow."""
import re
import sys

import tree

INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')


def read_table(path):
    """{layer: the layers it may include, itself among them}. A cycle or an unknown name is an error."""
    allowed = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.partition("#")[0].strip()
        if not line:
            continue
        layer, colon, below = line.partition(":")
        unknown = [name for name in below.split() if name not in allowed]
        if not colon or unknown or layer in allowed:
            sys.exit(f"{path}:{number}: each layer stands once, after those it includes: {line} {unknown}")
        allowed[layer] = {layer, *below.split()}
    return allowed


def layer_of(parts, allowed):
    """The layer that owns the path src/<parts>, or None."""
    for depth in (2, 1):
        name = "/".join(parts[:depth])
        if len(parts) > depth and name in allowed:
            return name
    return None


def main():
    args = tree.arguments(__doc__)
    allowed = read_table(args.root / "tools/layers.txt")
    src = args.root / "src"
    files = tree.sources(args.root, (".h", ".cc", ".def"), ("src",))
    errors = []
    for path in files:
        shown = path.relative_to(args.root)
        layer = layer_of(path.relative_to(src).parts, allowed)
        if layer is None:
            errors.append(f"{shown}:1: this folder is not in tools/layers.txt")
            continue
        for number, text in enumerate(path.read_text().splitlines(), 1):
            found = INCLUDE.match(text)
            if not found:
                continue
            target = layer_of(tuple(found[1].split("/")), allowed)
            if target is None:
                errors.append(f'{shown}:{number}: "{found[1]}" is not a path from src/, such as "ir/shape.h"')
            elif target not in allowed[layer]:
                errors.append(f"{shown}:{number}: layer '{layer}' may not include '{target}' (tools/layers.txt)")
    return tree.report("layers", len(files), errors)


if __name__ == "__main__":
    sys.exit(main())
