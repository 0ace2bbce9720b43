"""The findings of a lint: what tokamak.lint() returns, and how it is printed, as text, JSON and SARIF."""

import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import re

_SHOWN_LINES = 6  # source lines listed with a finding, as on the command line (chosen)
_LINE = re.compile(r"(.*?):(\d+)(?: \((.*)\))?$")
_COMMENT = re.compile(r"#\s*tokamak:\s*ignore(?:\[([^\]]*)\])?")


class LintWarning(UserWarning):
    """The category of the warnings that TOKAMAK_LINT asks for."""


def number(value):
    """A number as the command line prints it: three digits."""
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def limits(text):
    """A cost that a user names: (microseconds, None) of "20us", (None, share) of "10%"; None of another text."""
    for unit, scale in (("us", 1.0), ("%", 0.01)):
        with contextlib.suppress(ValueError):
            if text.endswith(unit) and 0 <= (value := float(text.removesuffix(unit)) * scale) < float("inf"):
                return (value, None) if unit == "us" else (None, value)
    return None


def position(line):
    """(file, line number) of "model.py:12 (f)", or None."""
    match = _LINE.match(line)
    return (match[1], int(match[2])) if match else None


@functools.lru_cache(64)
def _lines_of(path, _changed):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def source_line(path, line):
    """The text of a line of a file, or ""."""
    try:
        changed = pathlib.Path(path).stat().st_mtime_ns
    except OSError:
        return ""
    lines = _lines_of(str(path), changed)
    return lines[line - 1] if 0 < line <= len(lines) else ""


def is_same_rule(rule, name):
    """Whether `name`, as a user writes it, means this rule: with or without "lint."."""
    return rule.removeprefix("lint.") == name.strip().removeprefix("lint.")


def is_suppressed(rule, path, line):
    """Whether a comment `# tokamak: ignore[rule]` on the line, or alone on the line above, names the rule."""
    above = source_line(path, line - 1)
    for text in (source_line(path, line), above if above.lstrip().startswith("#") else ""):
        match = _COMMENT.search(text)
        if match and (match[1] is None or any(is_same_rule(rule, name) for name in match[1].split(","))):
            return True
    return False


@dataclasses.dataclass
class Lint:
    """One finding. `us`: microseconds per call, of a script per run; of a note, `saved_us` is what Tokamak saves already.
    `fix`: None, or a dict. Its `kind` says what to change; a fix that was written and verified also has `diff`, `text`,
    `before_us` and `after_us`. `why_no_fix` says why there is no such fix."""

    rule: str
    severity: str  # "warning" or "note"
    lines: list  # "model.py:12 (f)", the most important first; empty: the whole program
    us: float
    text: str
    saved_us: float = 0.0
    fix: dict | None = None
    why_no_fix: str = ""
    program: str = ""
    calls: int | None = None  # of a script
    more: dict = dataclasses.field(default_factory=dict)  # other fields of the compiler's finding

    @classmethod
    def of_json(cls, data, program=""):
        known = {field.name for field in dataclasses.fields(cls)} - {"more"}
        given = {"severity": "warning", "lines": [], "us": 0.0, "text": "", "program": program} | data
        given["lines"] = list(dict.fromkeys(line if isinstance(line, str) else line["text"] for line in given["lines"]))
        return cls(**{k: v for k, v in given.items() if k in known}, more={k: v for k, v in given.items() if k not in known})

    @property
    def is_warning(self):
        return self.severity == "warning"

    @property
    def is_suppressed(self):
        return any(at and is_suppressed(self.rule, *at) for at in map(position, self.lines))

    def data(self):
        """The finding as the dict of --json."""
        located = [(line, position(line) or ("", 0)) for line in self.lines]
        lines = [{"file": at[0], "line": at[1], "text": line} for line, at in located]
        out = {"rule": self.rule, "severity": self.severity, "lines": lines, "us": self.us, "saved_us": self.saved_us,
               "text": self.text, "fix": self.fix}  # fmt: skip
        optional = {"why_no_fix": self.why_no_fix, "program": self.program, "calls": self.calls}
        return self.more | out | {name: value for name, value in optional.items() if value}

    def __str__(self):
        here = os.getcwd() + os.sep
        where = ", ".join(line.removeprefix(here) for line in self.lines[:_SHOWN_LINES]) or "the program"
        if len(self.lines) > _SHOWN_LINES:
            where += f" and {len(self.lines) - _SHOWN_LINES} more"
        cost = f"{number(self.us)} us"
        if not self.is_warning:
            cost = f"note: saves {number(self.saved_us)} us" if self.saved_us > 0 else "note"
        return f"{self.rule}  {cost}  {where}\n           {self.text}"


class Lints(list):
    """Findings, the most expensive first. Prints as `tokamak lint` does. `.warnings`, `.notes` and `.rule(name)` select;
    `.json()` and `.sarif()` are for programs."""

    def __init__(self, lints=(), call_us=0.0, target="", unit="call", suppressed=(), more_suppressed=0, is_final=False, **more):
        order = sorted(lints, key=lambda lint: (not lint.is_warning, -lint.us, -lint.saved_us))
        hidden = [] if is_final else [lint for lint in order if lint.is_suppressed]  # is_final: comments suppress nothing
        super().__init__(lint for lint in order if not any(lint is h for h in hidden))
        self.call_us, self.target, self.unit, self.more, self.is_final = call_us, target, unit, more, is_final
        self.suppressed = [*suppressed, *hidden]
        self.more_suppressed = more_suppressed  # by the compiler, which reads the same comments

    def _with(self, lints):
        return Lints(lints, self.call_us, self.target, self.unit, self.suppressed, self.more_suppressed, self.is_final, **self.more)

    @property
    def warnings(self):
        return self._with(lint for lint in self if lint.is_warning)

    @property
    def notes(self):
        return self._with(lint for lint in self if not lint.is_warning)

    def rule(self, *names):
        """The findings of these rules ("key-reuse" or "lint.key-reuse")."""
        return self._with(lint for lint in self if any(is_same_rule(lint.rule, name) for name in names))

    def without(self, *names):
        """All findings but those of these rules."""
        return self._with(lint for lint in self if not any(is_same_rule(lint.rule, name) for name in names))

    def data(self):
        whole = self.call_us or float("inf")
        listed = [{"share": min(1.0, lint.us / whole)} | lint.data() for lint in self]
        out = {"lints": listed, f"{self.unit}_us": self.call_us, "target": self.target}
        return out | {"suppressed": len(self.suppressed) + self.more_suppressed} | self.more

    def json(self):
        """The findings as one line of JSON, as `tokamak lint --json` prints them."""
        return json.dumps(self.data())

    def sarif(self):
        """The findings as a SARIF 2.1.0 log, the format of code scanning services."""
        from tokamak import _lint_sarif

        return json.dumps(_lint_sarif.log_of(self), indent=1)

    def __str__(self):
        said = [str(lint) for lint in self]
        us = sum(lint.us for lint in self)
        if any(lint.is_warning for lint in self):
            said.append(f"{number(us)} of {number(self.call_us)} us per {self.unit}")
        else:
            said.append("no warnings" if self else "no lints")
        if self.suppressed or self.more_suppressed:
            said.append(f"{len(self.suppressed) + self.more_suppressed} suppressed by comments")
        return "\n".join(said)

    __repr__ = __str__
