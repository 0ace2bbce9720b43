"""Changes of Python sources: minimal edits of the text, so that formatting and comments stay."""

import ast
import dataclasses
import difflib
import os

from tokamak import _lint_source


@dataclasses.dataclass
class Change:
    """A change of one file. `edits`: [(begin, end, new text)] in offsets of the original. `imports`: lines to add if they are
    missing. `temporaries`: names that no longer exist after it. `tolerance`: largest relative difference of floats; with
    `may_narrow` results may also have a narrower type."""

    title: str
    source: object  # the original file (_lint_source.Source)
    edits: list
    imports: list = dataclasses.field(default_factory=list)
    temporaries: frozenset = frozenset()
    tolerance: float = 0.0
    may_narrow: bool = False
    function: str = ""  # whose locals are compared: its __qualname__

    @property
    def path(self):
        return os.path.realpath(self.source.path)

    def key(self):
        return (self.path, tuple(self.edits))


class NoFix(Exception):
    """Why a fix cannot be written."""


def overlaps(change, others):
    mine = [(b, e) for b, e, _ in change.edits]
    theirs = [(b, e) for other in others if other.path == change.path for b, e, _ in other.edits]
    return any(b < e2 and b2 < e for b, e in mine for b2, e2 in theirs)


def patched(changes):
    """{path: text} of the files after the changes."""
    texts = {}
    for path in {change.path for change in changes}:
        here = [change for change in changes if change.path == path]
        source = here[0].source
        edits = {edit for change in here for edit in change.edits}
        missing = {line for change in here for line in change.imports}
        known = set(source.text.splitlines(keepends=True))
        if added := "".join(sorted(missing - known)):
            at = _lint_source.import_offset(source)
            edits.add((at, at, added))
        text = source.text
        for begin, end, new in sorted(edits, reverse=True):
            text = text[:begin] + new + text[end:]
        ast.parse(text)  # a writer that breaks the syntax is rejected
        texts[path] = text
    return texts


def _shown(path):
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def diff_of(changes):
    """The changes as a unified diff that `patch -p1` and `git apply` take from the current folder."""
    parts = []
    for path, text in sorted(patched(changes).items()):
        before = next(change.source.text for change in changes if change.path == path)
        name = _shown(path).lstrip("/")
        parts += difflib.unified_diff(before.splitlines(keepends=True), text.splitlines(keepends=True), f"a/{name}", f"b/{name}")
    lines = []
    for line in parts:
        lines.append(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n")
    return "".join(lines)


def lines_after(changes):
    """A function from (path, line) of the original to the lines that it became; other files are unchanged."""
    moved = {}
    for path, text in patched(changes).items():
        old = next(c.source.text for c in changes if c.path == path).splitlines()
        for tag, i, j, k, m in difflib.SequenceMatcher(None, old, text.splitlines(), autojunk=False).get_opcodes():
            for n in range(i, j):
                moved[path, n + 1] = {k + n - i + 1} if tag == "equal" else set(range(k + 1, m + 1))
    return lambda path, line: moved.get((os.path.realpath(path), line), {line})


def replacements_of(change):
    """[{file, line, end_line, text}]: whole lines, for SARIF."""
    (path, text), = patched([change]).items()  # fmt: skip
    old, new = change.source.text.splitlines(keepends=True), text.splitlines(keepends=True)
    found = []
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            found.append({"file": path, "line": i + 1, "end_line": j + 1, "text": "".join(new[k:m])})
    return found


def qualified_name(node):
    """The __qualname__ of the function around a node, or "" for the module."""
    names, inside = [], False
    for parent in [node, *_lint_source.parents(node)]:
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and (parent is not node):
            is_function = not isinstance(parent, ast.ClassDef)
            if inside and is_function:
                names.append("<locals>")
            names.append(parent.name)
            inside = True
    return ".".join(reversed(names))
