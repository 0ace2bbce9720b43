"""examples/lint: each program shows one finding, at the line that names it in a comment; its fixed form does not."""

import contextlib
import io
import pathlib
import re

import jax
import pytest
from conftest import ROOT
from tokamak import _lint_child, _lint_cli, _lint_record, _lint_run
from tokamak._lint_result import position

FOLDER = ROOT / "examples" / "lint"
EXAMPLES = sorted(path for path in FOLDER.glob("*.py") if not path.stem.endswith("_fixed"))
_MARK = re.compile(r"# (lint\.[\w-]+)( on h200)?$", re.MULTILINE)


def findings(path, target="host"):
    """The findings of a program that runs in this process, and what it prints."""
    jax.clear_caches()  # functions of JAX that were called before would not be recorded
    recorder, out = _lint_record.Recorder(), io.StringIO()
    try:
        with recorder, contextlib.redirect_stdout(out):
            _, code = _lint_child._run(str(path), [], {})
    finally:
        jax.config.update("jax_enable_x64", False)
    assert code == 0
    return _lint_run.findings(recorder, target), out.getvalue()


def _numbers(text):
    return [float(word) for word in re.findall(r"-?\d+\.?\d*(?:e[-+]?\d+)?", text)]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.usefixtures("keep_main")
def test_the_finding_is_there_and_gone_when_fixed(path):
    text = path.read_text()
    (mark,) = _MARK.finditer(text)  # an example has one marked line
    rule, line, target = mark[1], text[: mark.start()].count("\n") + 1, "h200" if mark[2] else "host"
    # Steps that are interpreted are found since the library has the rules about loops.
    if _lint_cli._unknown_rule([rule, "host-in-loop"] if rule == "lint.interpreted" else [rule]):
        pytest.skip(f"this library has no rule {rule}")
    found, printed = findings(path, target)
    here = found.rule(rule)  # a note where the compiler removes the cost
    assert here, str(found)
    assert (path.name, line) in [(pathlib.Path(at[0]).name, at[1]) for at in map(position, here[0].lines)], str(found)
    fixed, printed_by_fixed = findings(path.with_name(path.stem + "_fixed.py"), target)
    left = fixed.warnings if here[0].is_warning else fixed
    assert not left.rule(rule), str(fixed)
    if rule == "lint.small-batch":
        return  # a larger batch is another result
    narrow = ("lint.promotion", "lint.key-reuse", "lint.upcast", "lint.library-boundary")
    tolerance = 2e-2 if rule in narrow else 1e-4
    for x, y in zip(_numbers(printed), _numbers(printed_by_fixed), strict=True):
        assert abs(x - y) <= tolerance * max(1.0, abs(x))


def test_every_rule_of_the_package_has_an_example():
    rules = {_MARK.search(path.read_text())[1] for path in EXAMPLES}
    source = "".join((ROOT / "python" / "tokamak" / name).read_text() for name in ("_lint_run.py", "_lint_traced.py"))
    assert set(re.findall(r'"(lint\.[\w-]+)"', source)) - {"lint.dispatch-bound"} <= rules
