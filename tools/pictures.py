#!/usr/bin/env python3
"""Draws the pictures in docs/: the plots of bench/paper from the data in docs/results, without measuring, and the architecture.

    tools/pictures.py            draws them
    tools/pictures.py --check    fails where a picture is not what its data gives (ctest name check.pictures)
"""
import sys

import draw_architecture  # also finds bench/
import paper_plots
import tree


def main():
    args = tree.arguments(__doc__.split("\n")[0], check="fail where a picture is not what its data gives, and write nothing")
    errors = draw_architecture.mistakes(args.root)
    results = args.root / "docs/results"
    drawn = {results / name: text for name, text in paper_plots.draw(results).items()} | {args.root / "docs/architecture.svg": draw_architecture.draw()}
    if args.check:
        differ = [path for path, text in drawn.items() if not path.is_file() or path.read_text() != text]
        errors += [f"{path.relative_to(args.root)}: not what its data gives; run tools/pictures.py" for path in differ]
        errors += [f"{path.relative_to(args.root)}: nothing draws it; remove it" for path in sorted(set(results.glob("*.svg")) - set(drawn))]
    elif not errors:
        for path, text in drawn.items():
            path.write_text(text)
    return tree.report("pictures", len(drawn), errors)


if __name__ == "__main__":
    sys.exit(main())
