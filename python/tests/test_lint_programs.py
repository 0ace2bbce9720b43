"""Programs with flax, optax and JAX's own libraries, and the examples: findings name lines of the program, and every fix that
is offered gives the same output when the patched file is run by itself."""

import os
import pathlib
import re

import pytest
from conftest import ROOT, script
from tokamak import _lint_edit, _lint_fix, _lint_script
from tokamak._lint_result import position

PROGRAMS = sorted((ROOT / "python" / "tests" / "lint_programs").glob("*.py"))
QUICK = ("embedding",)  # of every day; scripts/nightly runs all
NO_FINDINGS = ("conjugate_gradient", "k_means", "linen_attention", "linen_cnn")


def _marked(path):
    quick = path.stem in QUICK
    return pytest.param(path, id=path.stem, marks=() if quick else pytest.mark.slow)


def _output(path, text, folder):
    copy = folder / path.name
    copy.write_text(text)
    done = script(copy, timeout=300, TOKAMAK_LINT=0)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _assert_alike(before, after):
    assert re.sub(r"[-\d.]+", "#", before) == re.sub(r"[-\d.]+", "#", after)
    for x, y in zip(re.findall(r"-?\d+\.?\d*", before), re.findall(r"-?\d+\.?\d*", after), strict=True):
        assert abs(float(x) - float(y)) <= 1e-3 * max(1.0, abs(float(x)))


@pytest.mark.parametrize("path", [*map(_marked, PROGRAMS)])
def test_no_false_fix(path, run_here, tmp_path):
    pytest.importorskip("flax")
    pytest.importorskip("optax")
    lints = _lint_script.lints_of(run_here(path))
    for lint in lints:
        assert all(pathlib.Path(at[0]).is_file() for at in map(position, lint.lines) if at), str(lint)
    if path.stem in NO_FINDINGS:
        assert not lints.warnings.without("op-by-op", "one-hot-matmul", "stored-mask"), str(lints)
    patch = _lint_fix.fix(lints, str(path))
    assert all(lint.fix or lint.why_no_fix for lint in lints if _lint_fix._wants_fix(lint))
    if patch.changes:
        texts = _lint_edit.patched(patch.changes)
        assert list(texts) == [os.path.realpath(path)]
        _assert_alike(_output(path, path.read_text(), tmp_path), _output(path, texts[str(path.resolve())], tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("words", [("cartpole.py", "--steps", "20"), ("progress.py",)], ids=lambda words: words[0])
def test_examples_have_no_false_fix(words, tmp_path):
    path = ROOT / "examples" / words[0]
    result = _lint_script.run(str(path), words[1:], quiet=True, timeout=300)
    lints = _lint_script.lints_of(result)
    patch = _lint_fix.fix(lints, str(path), words[1:], timeout=300)
    for text in _lint_edit.patched(patch.changes).values():
        copy = tmp_path / words[0]
        copy.write_text(text)
        done = script(copy, *words[1:], timeout=300)
        assert done.returncode == 0, done.stderr
