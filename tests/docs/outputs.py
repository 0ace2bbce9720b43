"""Compares the output that a page shows with that of the program, and writes the new one into the page.

A line `...` of the page stands for any lines, and ` ...` at the end of a line for the rest of it. Measured times differ between
runs and are not compared. Everything else is: predictions, too, which is why pages show those of a machine file (--target h200)."""
import difflib
import re

ANY = "..."
# Measured, never predicted: predictions are in us.
VARIES = ((re.compile(r"\b\d[\d.]* (ms|s)\b"), r"# \1"),
          (re.compile(r"\b[\d.]+ measured"), "# measured"),
          # Whether a planner took longer, and after how many calls that has paid off, follows from measured times.
          (re.compile(r"^planning (?:takes no longer|\S+ \S+ more) than for (\w+).*"), r"planning # than for \1"))  # fmt: skip
TIMED_TABLE = re.compile(r"\bms$")  # the header of a table whose last column is measured
LAST_NUMBER = re.compile(r"\s+[\d.]+$")


def normalize(lines):
    """The lines without what differs from run to run."""
    timed, result = False, []
    for line in lines:
        line = line.rstrip()
        timed = bool(TIMED_TABLE.search(line)) or (timed and bool(LAST_NUMBER.search(line) or line == ANY))
        if timed:
            line = LAST_NUMBER.sub(" #", line)
        for pattern, replacement in VARIES:
            line = pattern.sub(replacement, line)
        result.append(line)
    return result


def same_line(shown, line):
    if shown.endswith(" " + ANY):
        return line.startswith(shown[: -len(ANY)])
    return shown == line


def segments(shown):
    """The runs of lines between the lines `...`: the first begins the output, the last ends it; both may be empty."""
    runs = [[]]
    for line in shown:
        if line == ANY:
            runs.append([])
        else:
            runs[-1].append(line)
    return runs


def matches(shown, lines):
    """Whether the output that a page shows is that of the program, and some of it where there is any."""
    if shown == [ANY]:
        return False
    runs, lines = segments(normalize(shown)), normalize(lines)

    def at(run, start):
        return len(lines) - start >= len(run) and all(map(same_line, run, lines[start:]))

    if len(runs) == 1:
        return len(lines) == len(runs[0]) and at(runs[0], 0)
    first, *middle, last = runs
    if not at(first, 0):
        return False
    start = len(first)
    for run in middle:
        start = next((begin + len(run) for begin in range(start, len(lines)) if at(run, begin)), None)
        if start is None:
            return False
    return len(lines) - len(last) >= start and at(last, len(lines) - len(last))


def refreshed(shown, lines):
    """The output for the page: as many lines of each part as it shows now, from the positions that resemble them most."""
    runs, lines = segments(shown), [line.rstrip() for line in lines]
    if len(runs) == 1 or shown == [ANY]:
        return renewed(runs[0], lines)
    first, *middle, last = runs
    result, start = renewed(first, lines[: len(first)]), len(first)
    end = max(len(lines) - len(last), start)
    for run in middle:
        begin = max(range(start, max(end - len(run), start) + 1), key=lambda begin: likeness(run, lines[begin:]))
        result += [ANY, *renewed(run, lines[begin : begin + len(run)])]
        start = begin + len(run)
    return [*result, ANY, *renewed(last, lines[max(end, start) :] if last else [])]


def renewed(shown, lines):
    """The lines, but those that differ from the shown ones in measured times only stay, and those cut by ` ...` are cut again."""
    if len(shown) != len(lines):
        return lines
    result = []
    for old, new, plain_old, plain_new in zip(shown, lines, normalize(shown), normalize(lines)):
        if same_line(plain_old, plain_new):
            new = old
        elif old.endswith(" " + ANY) and len(new) > len(old):
            new = new[: new.rfind(" ", 0, len(old) - len(ANY)) + 1] + ANY
        result.append(new)
    return result


def likeness(run, lines):
    return sum(difflib.SequenceMatcher(None, shown, line).ratio() for shown, line in zip(run, lines))


def difference(shown, lines):
    """What a reader of the failure wants to see."""
    diff = difflib.unified_diff(normalize(shown), normalize(lines), "the page", "the program", lineterm="", n=1)
    return "\n".join(f"    {line}" for line in diff)
