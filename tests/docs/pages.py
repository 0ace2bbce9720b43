"""The commands and programs that a Markdown page shows: fenced blocks by their language, and code spans in running text.
docs/testing.md describes the languages."""
import re
from dataclasses import dataclass, field

LANGUAGES = {"", "console", "sh", "python", "output", "cpp", "hlo", "kernel", "cmake"}
FENCE = re.compile(r"^( *)(```+)\s*([^\s`]*)[^`]*$")
# The first word of a command, behind variables that it sets.
PROGRAM = (r"(?:tokamak|random_programs|plan_order|tok_\w+|(?:\S*/)?python3?|cmake|ctest|pip|pre-commit|"
           r"(?:build|scripts|tools|bench|tests|examples)/[\w/.]*\w)")
COMMAND = re.compile(rf"(?:[A-Z_]+=\S+ +)*{PROGRAM}(?: |$)")


@dataclass
class Block:
    """A fenced block. `line` is the number of its first line inside the fence, `lines` are without the fence's indentation."""
    language: str
    line: int
    indent: int
    lines: list = field(default_factory=list)


@dataclass
class Command:
    """A command and its output: the lines below `line`, or None where the page shows none."""
    text: str
    line: int
    output: list | None


def blocks(text):
    """Every fenced block of a page."""
    found, open_block, fence = [], None, ""
    for number, line in enumerate(text.splitlines(), 1):
        match = FENCE.match(line)
        if open_block is None and match:
            open_block, fence = Block(match[3], number + 1, len(match[1])), match[2]
        elif open_block is not None and line.strip() == fence:
            found.append(open_block)
            open_block = None
        elif open_block is not None:
            open_block.lines.append(line[open_block.indent:] if not line[:open_block.indent].strip() else line)
    return found


def commands(block):
    """The commands of a `sh` or `console` block. A line that ends with a backslash continues in the next."""
    found, shown, lines = [], block.language == "console", iter(enumerate(block.lines, block.line))
    for number, line in lines:
        if shown and found and not line.startswith("$ "):
            found[-1].output.append(line)
            continue
        if not line.strip() or line.startswith("#"):
            continue
        text = line.removeprefix("$ ")
        while text.endswith("\\"):
            number, more = next(lines)
            text = text[:-1] + more.strip()
        found.append(Command(text, number, [] if shown else None))
    return found


def spans(text):
    """(line, text) of each code span outside of fenced blocks; a span that is broken over lines is joined."""
    outside = list(text.splitlines())
    for block in blocks(text):
        for number in range(block.line - 1, block.line + len(block.lines) + 1):
            outside[number - 1] = ""
    outside = "\n".join(outside)
    for match in re.finditer(r"(?<!`)`([^`]+)`(?!`)", outside):
        if "\n\n" not in match[1]:
            yield outside.count("\n", 0, match.start()) + 1, " ".join(match[1].split())


def is_command(text):
    return bool(COMMAND.match(text))
