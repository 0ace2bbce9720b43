"""A progress bar on stderr for the examples: bar(done, total, text)."""

import sys


def bar(done, total, text=""):
    """Draws the progress `done` of `total` over the previous line; on a new line if stderr is not a terminal."""
    width = 30
    filled = width * done // max(total, 1)
    line = f"[{'#' * filled}{'.' * (width - filled)}] {done}/{total}  {text}"
    if sys.stderr.isatty():
        print("\r" + line.ljust(79), end="\n" if done == total else "", file=sys.stderr, flush=True)
    elif done == total or done % max(total // 10, 1) == 0:
        print(line, file=sys.stderr, flush=True)
