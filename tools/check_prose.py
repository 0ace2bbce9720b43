#!/usr/bin/env python3
"""Fails where the prose of documents, comments and docstrings is hard to read: sentences that are too long, paragraphs of more than five
lines, lines that are not wrapped, the constructions that tools/constructions.txt bans, and misspelled words (codespell)."""
import ast
import dataclasses
import importlib.util
import re
import subprocess
import sys
import textwrap

import check_words
import tree

LIST = "tools/constructions.txt"
SPELLED_RIGHT = "tools/spelling.txt"  # words that codespell takes for mistakes
COLUMNS = 100
PARAGRAPH_LINES = 5
DOCUMENT_WORDS = 30  # in a sentence
COMMENT_WORDS = 35
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "examples/README.md", "docs/**/*.md")
WRITTEN_BY_COMMANDS = ("docs/results/", "docs/errors/", "docs/ops.md")  # not wrapped
SCRIPTS = ("tools/*.py", "scripts/*.py", "bench/**/*.py", "tests/**/*.py", "python/**/*.py", "examples/**/*.py")
OUTSIDE = re.compile(r"(^|/)(\.venv|build[^/]*)/|^tools/checks_test\.py$")

# Comments and the literals that may hold "//".
CPP = re.compile(r'R"(?P<mark>\w*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\[^\'\n]+|[^\'\\\n]|\\\')\'|(?P<line>//[^\n]*)|(?P<block>/\*.*?\*/)', re.S)
DIRECTIVE = re.compile(r"^(namespace\b|NOLINT|clang-format|IWYU|SPDX|#|!|-\*-)")
BULLET = re.compile(r"^(?P<indent>\s*)([-*+]|\d+[.)])\s+")
LINK_TARGET = re.compile(r"\](\([^)]*\)|\[[^\]]*\])")
VERBATIM = re.compile(r'``.+?``|`[^`]*`|"[^"]{1,120}"')
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|Fig|approx)\.(?=\s)")
SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\.\.\.)[)\"'*_]*\s+|:\s+")  # what a colon announces counts by itself
NAMES = re.compile(r"(?:[^\s,]+, ){2,}(?:(?:and|or) )?[^\s,]+")
WORD = re.compile(r"[A-Za-z0-9_]")


@dataclasses.dataclass
class Paragraph:
    """A paragraph, or an item of a list: the number of its first line, and its lines without markup of comments and lists."""
    number: int
    lines: list


def is_drawing(line):
    """Whether a line of a comment is code, a formula or a picture: it is indented or has a run of blanks."""
    return line.startswith("  ") or "   " in line.strip()


def paragraphs(numbered, drawings):
    """Splits (number, line) into paragraphs, at blank lines, gaps and list items. Lines that `drawings` names are left out."""
    found, last, in_item = [], None, False
    for number, line in numbered:
        bullet = BULLET.match(line)
        if not line.strip():
            last = None
            continue
        if bullet:
            found.append(Paragraph(number, [line[bullet.end():]]))
            in_item = True
        elif drawings(line) and not (in_item and last == number - 1):
            last, in_item = None, False
            continue
        elif last == number - 1:
            found[-1].lines.append(line.strip())
        else:
            in_item = False
            found.append(Paragraph(number, [line.strip()]))
        last = number
    return found


def plain(text):
    """Markdown as it is read: code and quotations are one word, a link is its text."""
    text = re.sub(r"!?\[([^\]]*)" + LINK_TARGET.pattern, r"\1", text)
    text = VERBATIM.sub("X", text)
    return re.sub(r"<[^>\s][^>]*>|https?://\S+|\*\*|__", lambda m: "" if m[0][0] in "*_<" else "X", text)


def markdown(text):
    """(number, line) of the prose: no code, no tables, no headings. Text indented by four is code outside lists only."""
    fence, comment, in_list = None, False, False
    for number, line in enumerate(text.splitlines(), 1):
        bare = re.sub(r"^(\s*>)+ ?", "", line)
        mark = re.match(r"\s*(```+|~~~+)", bare)
        if fence or mark:
            if mark and (fence is None or mark[1].startswith(fence)):
                fence = None if fence else mark[1]
            yield number, ""
            continue
        if comment or bare.lstrip().startswith("<!--"):
            comment = "-->" not in bare
            yield number, ""
            continue
        in_list = bool(BULLET.match(bare)) or (in_list and (not bare.strip() or bare.startswith(" ")))
        code = bare.startswith("    ") and not in_list
        yield number, "" if code or bare.lstrip().startswith("|") or re.match(r"#+ |\[[^\]]+\]: |[-=]{3,}$", bare) else bare


def cpp_comments(text):
    """(number, line) of each comment. A comment behind code continues in the comments below that start in the same column. A blank line
    separates comments that touch."""
    column, last, starts = None, 0, [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    number = 1
    for found in CPP.finditer(text):
        if not (found["line"] or found["block"]):
            continue
        while starts[number] <= found.start() and number < len(starts) - 1:
            number += 1
        start = starts[number - 1]
        alone = not text[start:found.start()].strip()
        if last != number - 1 or column != found.start() - start or not alone:
            yield number, ""
        column = found.start() - start
        for offset, line in enumerate(found[0].splitlines()):
            line = re.sub(r"^\s*(//+|/\*+|\*(?!/)) ?", "", line).removesuffix("*/").rstrip()
            last = number + offset
            yield last, "" if DIRECTIVE.match(line) else line


def python_prose(text):
    """(number, line) of docstrings and of comments that have their line to themselves."""
    scopes = [ast.parse(text)]
    for scope in scopes:
        scopes += (node for node in scope.body if isinstance(node, (ast.ClassDef, ast.FunctionDef)))
        if ast.get_docstring(scope, clean=False):
            said = scope.body[0].value
            yield said.lineno, ""
            lines = said.value.splitlines()
            margin = min((len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()), default=0)
            yield from ((said.lineno + i, (line[margin:] if i else line).rstrip()) for i, line in enumerate(lines))
    for number, line in enumerate(text.splitlines(), 1):
        if said := re.match(r"\s*#(?!!)( |$)(.*)", line):
            yield number, said[2]


def sentences(paragraph):
    """(number of the line it starts on, text) of each sentence."""
    text, ends = "", []
    for offset, line in enumerate(paragraph.lines):
        text += (" " if text else "") + line
        ends.append((len(text), paragraph.number + offset))
    marked = ABBREVIATION.sub(lambda m: m[0].replace(".", "\0"), VERBATIM.sub(lambda m: re.sub(r"[.:!?]", "\0", m[0]), text))
    start = 0
    for end in [*(m.end() for m in SENTENCE_END.finditer(marked)), len(text)]:
        if text[start:end].strip():
            yield next(number for stop, number in ends if start < stop), plain(text[start:end].strip())
        start = end


def words(sentence):
    """How many words a sentence has. A list of names counts as one."""
    return sum(1 for word in NAMES.sub("x", sentence).split() if WORD.search(word))


def read_check(name, found, banned, limit):
    """The findings that documents and comments share."""
    for paragraph in found:
        for number, sentence in sentences(paragraph):
            if (count := words(sentence)) > limit:
                yield f"{name}:{number}: a sentence of {count} words (at most {limit}): '{sentence[:60]}...'"
            for pattern, use in banned:
                if hit := pattern.search(sentence):
                    yield f"{name}:{number}: '{hit[0]}': use {use}"


def document(name, text, banned):
    found = paragraphs(markdown(text), lambda line: False)
    yield from read_check(name, found, banned, DOCUMENT_WORDS)
    if name.startswith(WRITTEN_BY_COMMANDS):
        return
    for number, line in markdown(text):
        columns = len(LINK_TARGET.sub("]", line))
        if columns > COLUMNS and not line.startswith("!["):
            yield f"{name}:{number}: {columns} columns (at most {COLUMNS})"
    for paragraph in found:
        if (lines := len(textwrap.wrap(" ".join(paragraph.lines), COLUMNS))) > PARAGRAPH_LINES:
            yield f"{name}:{paragraph.number}: a paragraph of {lines} lines (at most {PARAGRAPH_LINES})"


def comments(name, text, banned):
    numbered = python_prose(text) if name.endswith(".py") else cpp_comments(text)
    yield from read_check(name, paragraphs(numbered, is_drawing), banned, COMMENT_WORDS)


def codespell(root, names):
    """The process that looks for misspelled words, or None if codespell is not installed. Identifiers in camel case are not words."""
    if importlib.util.find_spec("codespell_lib") is None:
        return None
    ignored = ["--ignore-words", SPELLED_RIGHT] if (root / SPELLED_RIGHT).exists() else []
    return subprocess.Popen([sys.executable, "-m", "codespell_lib", "--ignore-regex", r"\b\w*[a-z0-9][A-Z]\w*\b", *ignored, *names],
                            cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def main():
    args = tree.arguments(__doc__)
    banned, errors = list(check_words.rows((args.root / LIST).read_text())), []
    paths = [*(path for pattern in DOCUMENTS + SCRIPTS for path in args.root.glob(pattern)), *tree.sources(args.root, (".h", ".cc", ".def"))]
    names = [name for path in paths if not OUTSIDE.search(name := path.relative_to(args.root).as_posix())]
    spelling = codespell(args.root, names)  # beside the rest
    for name in names:
        errors += (document if name.endswith(".md") else comments)(name, (args.root / name).read_text(), banned)
    if spelling is not None:
        errors += (line.removeprefix("./") for line in spelling.communicate()[0].splitlines())
    code = tree.report("prose", len(names), sorted(errors))
    if spelling is None and code == 0:
        print("codespell is not installed (scripts/bootstrap installs it): spelling was not checked")
        return tree.SKIPPED
    return code


if __name__ == "__main__":
    sys.exit(main())
