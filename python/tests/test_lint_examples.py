"""examples/lint: each program shows one finding, at the line that names it in a comment; its fixed form does not."""

import contextlib
import io
import pathlib
import re

import jax
import pytest
from conftest import ROOT
from tokamak import _lint_child, _lint_record, _lint_run
from tokamak._lint_result import place

FOLDER = ROOT / "examples" / "lint"
EXAMPLES = sorted(path for path in FOLDER.glob("*.py") if not path.stem.endswith("_fixed"))
_MARK = re.compile(r"# (lint\.[\w-]+)$", re.MULTILINE)


def findings(path):
    """The findings of a program that runs in this process, and what it prints."""
    jax.clear_caches()  # functions of JAX that were called before would not be recorded
    recorder, out = _lint_record.Recorder(), io.StringIO()
    try:
        with recorder, contextlib.redirect_stdout(out):
            _, code = _lint_child._run(str(path), [], {})
    finally:
        jax.config.update("jax_enable_x64", False)
    assert code == 0
    return _lint_run.findings(recorder), out.getvalue()


@pytest.fixture(autouse=True)
def _keep_main(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))


def _numbers(text):
    return [float(word) for word in re.findall(r"-?\d+\.?\d*(?:e[-+]?\d+)?", text)]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_finding_is_there_and_gone_when_fixed(path):
    wanted = [(match[1], path.read_text()[: match.start()].count("\n") + 1) for match in _MARK.finditer(path.read_text())]
    assert len(wanted) == 1, "an example has one marked line"
    (rule, line), = wanted  # fmt: skip
    found, printed = findings(path)
    here = [lint for lint in found.warnings if lint.rule == rule]
    assert [(pathlib.Path(at[0]).name, at[1]) for at in map(place, here[0].lines)][0] == (path.name, line), str(found)
    fixed, printed_by_fixed = findings(path.with_name(path.stem + "_fixed.py"))
    assert not fixed.rule(rule), str(fixed)
    tolerance = 2e-2 if rule in ("lint.upcast", "lint.key-reuse") else 1e-5
    for x, y in zip(_numbers(printed), _numbers(printed_by_fixed), strict=True):
        assert abs(x - y) <= tolerance * max(1.0, abs(x))


def test_every_rule_of_the_package_has_an_example():
    rules = {_MARK.search(path.read_text())[1] for path in EXAMPLES}
    source = "".join((ROOT / "python" / "tokamak" / name).read_text() for name in ("_lint_run.py", "_lint_traced.py"))
    assert set(re.findall(r'"(lint\.[\w-]+)"', source)) - {"lint.dispatch-bound"} <= rules
