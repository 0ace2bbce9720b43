#!/usr/bin/env python3
"""Writes docs/errors: an index of all errors, and a page per hundred codes (docs/errors/TK23xx.md#tk2304).

    tools/error_pages.py build/bin/tokamak            writes the pages
    tools/error_pages.py build/bin/tokamak --check    exit 1 if they differ from what would be written

What is wrong comes from src/support/errors.def, why and how to fix it from src/explain/error_help.def, and the example from the first
short test of the code in tests/errors: its program without the test's comments, and what `tokamak` prints for it.
Long and binary programs are left out.
"""
import argparse
import ast
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path

import check_errors

ROOT = check_errors.ROOT
PAGES = ROOT / "docs/errors"
EXIT = {"kMismatch": 1, "kBadInput": 2, "kUnsupported": 3, "kMachine": 4, "kOurBug": 70}
ADDRESS_SPACE = 4 << 30  # as for tests/errors
LONGEST_LINE = 140       # of an example, in columns
MOST_LINES = 40
INDEX = """
# Errors

`tokamak explain TK2304` prints why an error occurs and how to fix it.

| exit code | meaning |
|---|---|
| 1 | values differ, or a check fails |
| 2 | bad input or usage |
| 3 | not supported |
| 4 | a problem of the machine: memory, disk, device |
| 70 | a bug in Tokamak |
"""
HEAD = "<!-- Written by tools/error_pages.py from src/support/errors.def, src/explain/error_help.def and tests/errors. -->\n"


@dataclass(frozen=True)
class Program:
    name: str        # model.hlo
    contents: bytes
    shown: bool      # whether it is text that fits on a page


def bytes_of(line):
    """The bytes of a line of a .bytes test: hex digits, "text", or 3 * one of them."""
    if line.startswith("#"):
        return b""
    times, text = re.fullmatch(r"(?:(\d+) \* )?(.*)", line.strip()).groups()
    return int(times or 1) * (ast.literal_eval("b" + text) if text.startswith('"') else bytes.fromhex(text))


def is_shown(contents):
    lines = contents.splitlines()
    return (bool(contents.strip()) and len(lines) <= MOST_LINES and max(map(len, lines)) <= LONGEST_LINE
            and all(line.isascii() and line.decode().isprintable() for line in lines))


def program_of(test):
    """The program of a test as a user would have it."""
    lines = test.read_text().splitlines()
    if test.suffix == ".bytes":
        contents = b"".join(map(bytes_of, lines))
        return Program("model.mlirbc" if contents.startswith(b"ML\xefR") else "model.txt", contents, is_shown(contents))
    body = "\n".join(line for line in lines if not line.startswith("//")).strip("\n") + "\n"
    return Program(f"model{test.suffix}", body.encode(), is_shown(body.encode()))


def commands(test, name):
    """(words of a `tokamak` command, whether it reads the program, codes) of each RUN line; out/ is its temporary folder."""
    for block in re.split(r"^(?://|#) RUN: ", test.read_text(), flags=re.M)[1:]:
        text = block.split("\n", 1)[0].strip()
        codes = [code for code, _ in check_errors.EXPECTED.findall(block)]
        reads = "%s" in text or not text.startswith("tokamak")
        words = shlex.split(text.removeprefix("tokamak").replace("%t", "out"))
        if words and words[0] == "read":
            words[0] = "check"
        if "%s" in words:
            words = [name if word == "%s" else word for word in words]
        elif reads:
            words.append(name)
        yield words, reads, codes


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


def messages(tokamak, words, program):
    """What the command prints on standard error in a folder with the program and an empty folder out."""
    with tempfile.TemporaryDirectory(prefix="tokamak-pages-") as folder:
        (Path(folder) / program.name).write_bytes(program.contents)
        (Path(folder) / "out").mkdir()
        done = subprocess.run([tokamak, *words], cwd=folder, capture_output=True, text=True, errors="replace", timeout=60,
                              check=False, preexec_fn=limit)
        return done.stderr


def example(tokamak, code, tests):
    """The lines of a page that show the error: a program, the command and its messages."""
    programs = [(test, program_of(test)) for test, _ in tests if test.suffix in (".hlo", ".mlir", ".bytes")]
    for test, program in sorted(programs, key=lambda pair: not pair[1].shown):
        for words, reads, codes in commands(test, program.name):
            if codes[:1] != [code]:
                continue
            said = messages(tokamak, words, program)
            if f"error[{code}]" not in said:
                raise SystemExit(f"{test.relative_to(ROOT)}: `tokamak {shlex.join(words)}` does not give {code}:\n{said}")
            shown = f"`{program.name}`:\n\n```\n{program.contents.decode()}```\n\n" if reads and program.shown else ""
            lines = [f"$ tokamak {shlex.join(words)}", *(line.rstrip() for line in said.rstrip().splitlines())]
            return shown + "```\n" + "\n".join(lines) + "\n```\n\n"
    return ""


def paragraph(text):
    return "\n".join(textwrap.wrap(text, 100, break_long_words=False, break_on_hyphens=False)) + "\n\n"


def section(tokamak, row, help_row, tests):
    code, _, _, _, meaning = row
    return (f"## {code}\n\n" + paragraph(f"**{meaning}** {help_row.why}") + paragraph(f"**Fix.** {help_row.fix}")
            + example(tokamak, code, tests))


def page_name(code):
    return f"{code[:4]}xx.md"


def pages(tokamak):
    """{file name: text} of every page."""
    rows, helped, tests = sorted(check_errors.rows()), check_errors.help_rows(), check_errors.tests_by_code()
    topics = check_errors.topics()
    texts = {}
    index = HEAD + INDEX
    for row in rows:
        code, _, exit_kind, status, meaning = row
        name = page_name(code)
        if name not in texts:
            topic = topics[code[2:4]]
            texts[name] = f"{HEAD}\n# {code[:4]}xx: {topic}\n\n"
            index += f"\n## [{code[:4]}xx]({name}): {topic}\n\n| code | meaning | exit code | PJRT status |\n|---|---|---|---|\n"
        texts[name] += section(tokamak, row, helped[code], tests.get(code, []))
        index += f"| [{code}]({name}#{code.lower()}) | {meaning} | {EXIT[exit_kind]} | `{status}` |\n"
    return {"README.md": index, **{name: text.rstrip("\n") + "\n" for name, text in texts.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tokamak", type=lambda path: Path(path).resolve())
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    wanted = pages(args.tokamak)
    there = {path.name: path for path in PAGES.glob("*.md")}
    if not args.check:
        for name in there.keys() - wanted.keys():
            there[name].unlink()
        for name, text in wanted.items():
            (PAGES / name).write_text(text)
        return 0
    differ = sorted(name for name in there.keys() | wanted.keys()
                    if name not in there or name not in wanted or there[name].read_text() != wanted[name])
    for name in differ:
        print(f"docs/errors/{name} differs: run tools/error_pages.py build/bin/tokamak")
    print(f"error pages: {len(wanted)} pages, {len(differ)} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
