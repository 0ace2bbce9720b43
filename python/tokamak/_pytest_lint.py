"""The pytest plugin: `pytest --tokamak-lint` fails a test whose programs cost more than they need, and
`@pytest.mark.tokamak_lint` asks for it for one test. Imported by every pytest run where the package is installed: it imports
JAX only for tests that are linted."""

import contextlib
import functools

import pytest

from tokamak import _lint_jax, _lint_record, _lint_run
from tokamak._lint_result import is_same_rule, limits

_DEFAULT = "10%"
# A finding about the values, not the time, fails a test at any threshold.
_WRONG_VALUES = ("key-reuse",)
_MEASURED = ("retrace", "jit-in-loop", "host-round-trip")  # their microseconds are parts of the measured time


def pytest_addoption(parser):
    group = parser.getgroup("tokamak")
    group.addoption("--tokamak-lint", action="store_true", help="fail tests whose compiled programs have lint warnings")
    group.addoption("--tokamak-lint-cost", default=_DEFAULT, metavar="COST",
                    help="of at least this cost: microseconds per test (20us), or a part of its time (10%%, the default)")  # fmt: skip
    group.addoption("--tokamak-lint-ignore", default="", metavar="RULES", help="rules that fail no test, separated by commas")
    group.addoption("--tokamak-lint-target", default="host", metavar="TARGET", help="what costs are predicted for: host or h200")


def pytest_configure(config):
    config.addinivalue_line("markers", "tokamak_lint(ignore=[], threshold='10%', enabled=True): fail the test if its compiled programs"
                            " have lint warnings that cost this much")  # fmt: skip
    try:
        _limits(config.getoption("--tokamak-lint-cost"))
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None


def _limits(text):
    """(microseconds, share), one of them None."""
    if (found := limits(text)) is None:
        raise ValueError(f"--tokamak-lint-cost={text}: expected a cost such as 20us or 10%")
    return found


def _settings(item):
    """(ignored rules, limits) of a test, or None if it is not linted."""
    option, marker = item.config.getoption("--tokamak-lint"), item.get_closest_marker("tokamak_lint")
    if not option and marker is None:
        return None
    given = dict(marker.kwargs) if marker else {}
    if not given.get("enabled", True):
        return None
    ignore = list(given.get("ignore", ())) + [r for r in item.config.getoption("--tokamak-lint-ignore").split(",") if r]
    return ignore, _limits(given.get("threshold") or item.config.getoption("--tokamak-lint-cost"))


@functools.cache  # it keeps the hooks until the process ends: without a reference they are undone
def _prepare():
    """From the first linted test on, every call of a compiled function passes by the recorder's hooks, outside of linted tests too:
    JAX calls a function by its fast path from then on if one call of it passed by no hook."""
    import jax

    hooks = contextlib.ExitStack()
    hooks.enter_context(_lint_jax.calls(lambda call: None))
    jax.clear_caches()
    return hooks


def _above(lints, least):
    us, share = least
    for lint in lints.warnings:
        whole = lints.call_us if any(is_same_rule(lint.rule, rule) for rule in _MEASURED) else lints.more["predicted_us"]
        if any(is_same_rule(lint.rule, rule) for rule in _WRONG_VALUES) or (lint.us >= us if us is not None else lint.us > share * whole):
            yield lint


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    settings = _settings(item)
    if settings is None:
        return (yield)
    _prepare()
    recorder = _lint_record.Recorder()
    with recorder:
        result = yield
    ignore, least = settings
    lints = _lint_run.findings(recorder, item.config.getoption("--tokamak-lint-target"))
    if failing := list(_above(lints.without(*ignore), least)):
        said = "\n".join(map(str, failing))
        pytest.fail(f"the programs of this test cost more than they need:\n{said}", pytrace=False)
    return result
