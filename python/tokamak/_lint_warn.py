"""Warnings while programs are compiled under JAX (TOKAMAK_LINT): the library keeps the findings of each compilation, and they
become Python warnings of the category tokamak.LintWarning where the compilation was started, once a line."""

import os
import warnings

from tokamak import _debug, _library, _lint_jax, _lint_traced
from tokamak._lint_result import Lint, LintWarning, is_same_rule, is_suppressed, number, position

WORTH = 0.1  # of a call: without TOKAMAK_LINT, only findings that cost more warn (chosen: a tenth of a step is worth a line)


def wants_all():
    return os.environ.get("TOKAMAK_LINT") == "1"


class _Warner:
    """Warns after each compilation."""

    def __init__(self):
        self.seen, self.registry = set(), {}

    def phase(self, _function, phase, _seconds):
        """Called by JAX after each compilation in the user's thread, where a warning may become an exception."""
        if phase == "compile":
            for event in _library.query_json("tok_take_lints", []):
                self.warn([Lint.of_json(lint) for lint in event["lints"]], event.get("call_us", 0.0))

    def on_lower(self, jaxpr):
        """Findings of the traced function, for TOKAMAK_LINT=1."""
        self.warn(_lint_traced.of_jaxpr(jaxpr, dict), 0.0)

    def warn(self, lints, call_us):
        for lint in filter(None, map(_lint_traced.located, lints)):
            at = next((at for at in map(position, lint.lines) if at and _lint_jax.is_users(at[0])), None)
            if at is None or not lint.is_warning or is_same_rule(lint.rule, "dispatch-bound"):
                continue  # a single call says nothing about dispatch
            if not wants_all() and lint.us <= WORTH * call_us:
                continue
            if (lint.rule, *at) in self.seen or is_suppressed(lint.rule, *at):
                continue
            self.seen.add((lint.rule, *at))
            cost = f"{number(lint.us)} of {number(call_us)} us per call: " if call_us else ""
            warnings.warn_explicit(f"{lint.rule}: {cost}{lint.text}", LintWarning, *at, module=at[0], registry=self.registry)


_warner = None


def start():
    """Called when the plugin is initialized."""
    global _warner
    if os.environ.get("TOKAMAK_LINT") == "0" or _warner is not None:
        return
    _warner = _Warner()
    _library.text("tok_take_lints")  # the library keeps them from now on
    _debug.add_permanent(_warner.phase)
    if wants_all():
        _lint_jax.on_first_lowering(_warner.on_lower)
