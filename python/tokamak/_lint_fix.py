"""`tokamak lint --fix`: writes changes of the source, and offers those that were verified by running the script with them.

A change is offered if the patched script ends as before, prints the same and leaves equal values, in its globals and in the
locals of the changed function. It must no longer have the finding, and must not be predicted to take longer."""

import dataclasses
import functools
import os
import re
import tempfile

from tokamak import _lint_edit, _lint_fix_forms, _lint_fix_jit, _lint_fix_loop, _lint_jax, _lint_script, _lint_source, _lint_values
from tokamak._lint_edit import NoFix
from tokamak._lint_result import is_same_rule, number, position

_COST_MARGIN = 1.001  # the sums of the model are rounded (chosen)
_COMPILE_RATIO = 10.0  # an unrolled loop may become costlier by this part of the compile time that it saves (chosen)
_COMPILED_LESS = 0.8  # compile times that differ less are not worth a word: they are measured once (chosen)
_ERROR = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit)\b")
_LONGEST = 200  # characters of an error that are shown (chosen)
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


# ---- what to change, by rule


def _loop_node(header):
    at = position(header)
    source = at and _lint_source.source_of(at[0])
    if source is None:
        raise NoFix("the loop was not found in the source")
    loop = source.loop_at(at[1])
    if loop is None:
        raise NoFix("the loop is a comprehension")
    return source, loop


def _of_loop(lint):
    """The loop itself, and those around it in the same function: an inner loop may be too short to matter."""
    if "loop" not in lint.more:
        raise NoFix("no Python loop is around the line")
    source, loop = _loop_node(lint.more["loop"])
    found, why = [], None
    for node in (loop, *_lint_source.parents(loop)):
        if isinstance(node, _lint_source.SCOPES):
            break
        if isinstance(node, _lint_source.LOOPS):
            try:
                found += _lint_fix_loop.changes(source, node)
            except NoFix as reason:
                why = why or reason
    if not found:
        raise why or NoFix("no form is recognized")
    return found


def _of_donation(lint):
    name, path, line = lint.more.get("definition", ("", "", 0))
    arguments = lint.more.get("fed_back") or (lint.fix or {}).get("names") or []
    if not path:
        raise NoFix("the function's definition was not found")
    return _lint_fix_jit.donate(path, line, name, arguments)


def _of_jit(lint):
    if "loop" not in lint.more:
        raise NoFix("no Python loop is around the jax.jit")
    return _lint_fix_jit.hoist_jit(*position(lint.more["loop"]))


def _of_invariant(lint):
    path, loop_line = position(lint.more["loop"])
    return _lint_fix_jit.hoist(path, loop_line, position(lint.lines[0])[1])


def _of_width(lint):
    path, line = position(lint.lines[0])
    to = lint.more.get("narrow") or ("float32" if is_same_rule(lint.rule, "float64") else "bfloat16")
    return _lint_fix_forms.narrow(path, line, to, lint.more.get("operand", ""))


def _at_line(write):
    def of(lint):
        found, why = [], None
        for at in map(position, lint.lines):
            try:
                found += write(*at) if at else []
            except NoFix as reason:
                why = reason
        if not found:
            raise why or NoFix("the finding has no line")
        return found

    return of


_KEY = "another key gives other random numbers: no fix can be compared"
_WRITERS = {
    "unrolled-loop": _of_loop, "call-loop": _of_loop, "op-by-op": _of_loop, "host-round-trip": _of_loop,
    "missing-donation": _of_donation, "jit-in-loop": _of_jit, "loop-invariant": _of_invariant, "float64": _of_width, "promotion": _of_width,
}  # fmt: skip


def _writer(rule):
    name = rule.removeprefix("lint.")
    if name in _WRITERS:
        return _WRITERS[name]
    if "gather" in name:
        return _at_line(_lint_fix_forms.slices)
    if "one-hot" in name or "onehot" in name:
        return _at_line(_lint_fix_forms.take_rows)
    return None


def _wants_fix(lint):
    """Notes say that Tokamak does it already. An unrolled loop still costs tracing and compiling."""
    return lint.is_warning or is_same_rule(lint.rule, "unrolled-loop")


def candidates(lint):
    """The Changes for a finding. Raises NoFix."""
    if is_same_rule(lint.rule, "key-reuse"):
        raise NoFix(_KEY)
    write = _writer(lint.rule)
    if write is None:
        raise NoFix("there is no automatic fix for this rule")
    changes = write(lint)
    for change in changes:
        if not _lint_jax.is_users(change.path):
            raise NoFix("the line is in an installed package")
    return changes


# ---- runs


class _Baseline:
    """The original run, to compare with."""

    def __init__(self, script, args, target, timeout, folder, watch):
        self.script, self.args, self.target, self.timeout, self.folder, self.watch = script, args, target, timeout, folder, watch
        self.count = 0
        self.result, self.values, self.printed = self.run({})
        self.lints = _lint_script.lints_of(self.result)

    def run(self, patches):
        self.count += 1
        values = os.path.join(self.folder, f"values{self.count}.npz")
        stdout = os.path.join(self.folder, f"stdout{self.count}")
        result = _lint_script.run(self.script, self.args, self.target, patches=patches, values=values, watch=self.watch, stdout=stdout,
                                  timeout=self.timeout)  # fmt: skip
        with open(stdout, encoding="utf-8", errors="replace") as file:
            return result, values, file.read().splitlines()

    @functools.cached_property
    def again(self):
        """A second run of the original, which shows what differs from run to run."""
        return self.run({})

    def unstable_lines(self):
        """Lines that two runs of the original print differently: times, for example."""
        printed = self.again[2]
        same_length = len(printed) == len(self.printed)
        return {i for i, (x, y) in enumerate(zip(self.printed, printed)) if x != y} if same_length else None

    def unstable_values(self):
        agree, _, _ = _lint_values.compared(self.values, self.again[1])
        return not agree


def _same_line(x, y, tolerance):
    if x == y:
        return True
    if not tolerance or _NUMBER.sub("#", x) != _NUMBER.sub("#", y):
        return False
    return all(abs(float(a) - float(b)) <= max(tolerance * abs(float(a)), _last_digit(a)) for a, b in zip(_NUMBER.findall(x), _NUMBER.findall(y)))


def _last_digit(text):
    """One unit of the last digit that is printed."""
    mantissa, _, exponent = text.lower().partition("e")
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def _check_printed(baseline, printed, tolerance):
    if len(printed) == len(baseline.printed):
        different = {i for i, (x, y) in enumerate(zip(baseline.printed, printed)) if not _same_line(x, y, tolerance)}
        if not different or different <= (baseline.unstable_lines() or set()):
            return
    elif baseline.unstable_lines() is None:
        return  # two runs of the original print different lines
    raise NoFix("the patched script prints something else")


def _last_error(stderr):
    """The last line of a traceback, without what JAX adds."""
    lines = [line for line in stderr.strip().splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.match(line)]
    return ([*lines, *errors] or ["no message"])[-1][:_LONGEST]


def _is_there(lint, lints, lines_after):
    """Whether a finding of the original is among those of the patched script: at the lines that its lines became."""
    before = [at for at in map(position, lint.lines) if at]
    now = {(os.path.realpath(path), new) for path, line in before for new in lines_after(path, line)}
    return any((os.path.realpath(at[0]), at[1]) in now for other in lints.rule(lint.rule) if other.severity == lint.severity
               for at in map(position, other.lines) if at)  # fmt: skip


@dataclasses.dataclass
class Verified:
    changes: list
    before_us: float
    after_us: float
    compared: str
    worst: float
    compile_before: float
    compile_after: float

    def text(self):
        said = f"{'; '.join(c.title for c in self.changes)} ({self.compared} equal"
        said += f" within {self.worst:.1g}" if self.worst else ""
        said += f"; predicted {number(self.before_us)} -> {number(self.after_us)} us per run"
        if self.compile_after < _COMPILED_LESS * self.compile_before:
            said += f", compiled in {number(1e3 * self.compile_before)} -> {number(1e3 * self.compile_after)} ms"
        return said + ")"


def _verify(baseline, changes, lint=None):
    """Runs the script with changes. Returns Verified or raises NoFix. `lint`: the finding that must be gone."""
    try:
        patches = _lint_edit.patched(changes)
    except SyntaxError:
        raise NoFix("the form of the source is not recognized") from None
    try:
        result, values, printed = baseline.run(patches)
    except _lint_script.ScriptError as error:
        raise NoFix(f"the patched script fails: {error}") from None
    if result["exit_code"] != baseline.result["exit_code"]:
        raise NoFix("the patched script fails: " + _last_error(result["stderr"]))
    tolerance = max(c.tolerance for c in changes)
    temporaries = frozenset().union(*(c.temporaries for c in changes))
    agree, what, worst = _lint_values.compared(baseline.values, values, temporaries, tolerance, any(c.may_narrow for c in changes))
    if not agree and baseline.unstable_values():
        raise NoFix("two runs of the original script give different values: nothing can be compared")
    if not agree:
        raise NoFix(f"the values differ: {what}")
    _check_printed(baseline, printed, tolerance)
    if what == "0 arrays" and not printed:
        raise NoFix("the run prints nothing and leaves no values that could be compared")
    return _check_costs(baseline, result, changes, lint, what, worst)


def _check_costs(baseline, result, changes, lint, what, worst):
    lints, before = _lint_script.lints_of(result), baseline.lints
    if lint is not None and _is_there(lint, lints, _lint_edit.lines_after(changes)):
        raise NoFix("the finding is still there after the change")
    old, new = before.more.get("predicted_us", before.call_us), lints.more.get("predicted_us", lints.call_us)
    # Tracing and compiling an unrolled loop is a cost, too: here, that of this run.
    saved = 1e6 * (baseline.result["compile_seconds"] - result["compile_seconds"])
    is_smaller = lint is not None and is_same_rule(lint.rule, "unrolled-loop") and saved > _COMPILE_RATIO * (new - old)
    if new > old * _COST_MARGIN and not is_smaller and lint is not None:
        raise NoFix(f"the changed program is predicted to take longer: {number(new)} us per run, not {number(old)}")
    return Verified(changes, old, new, what, worst, baseline.result["compile_seconds"], result["compile_seconds"])


# ---- the patch


@dataclasses.dataclass
class Patch:
    changes: list
    fixed: list  # findings with a verified fix
    unfixed: list  # findings without one
    verified: Verified | None = None

    @property
    def diff(self):
        return _lint_edit.diff_of(self.changes) if self.changes else ""

    def apply(self):
        """Changes the files."""
        for path, text in _lint_edit.patched(self.changes).items():
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(text)

    def summary(self):
        lines = [f"fix: {lint.rule} {', '.join(lint.lines[:2])}: {lint.fix['text']}" for lint in self.fixed]
        lines += [f"no fix: {lint.rule} {', '.join(lint.lines[:2])}: {lint.why_no_fix}" for lint in self.unfixed]
        if self.verified and len(self.changes) > 1:
            lines.append(f"all {len(self.changes)} changes together: {self.verified.text()}")
        return "\n".join(lines) or "nothing to fix"


def _watched(all_changes):
    return sorted({(change.path, change.function) for change in all_changes if change.function})


class _Fixer:
    def __init__(self, lints, baseline_of):
        self.lints, self.baseline_of = lints, baseline_of
        self.tried = {}  # key of a change -> Verified or NoFix
        self.chosen, self.fixed, self.unfixed = [], [], []

    def run(self):
        offered = []
        for lint in self.lints:
            if not _wants_fix(lint):
                continue
            try:
                offered.append((lint, candidates(lint)))
            except NoFix as reason:
                self.leave(lint, reason)
        if not offered:
            return Patch([], [], self.unfixed)
        self.baseline = self.baseline_of(_watched([c for _, changes in offered for c in changes]))
        for lint, changes in offered:
            self.choose(lint, changes)
        return self.together()

    def leave(self, lint, why):
        lint.why_no_fix = str(why)
        self.unfixed.append(lint)

    def choose(self, lint, changes):
        why = NoFix("no form is recognized")
        for change in changes:
            try:
                verified = self.verified(change, lint)
            except NoFix as reason:
                why = reason
                continue
            self.accept(lint, change, verified)
            return
        self.leave(lint, why)

    def verified(self, change, lint):
        key = (change.key(), lint.rule, tuple(lint.lines))
        if key not in self.tried:
            try:
                self.tried[key] = _verify(self.baseline, [change], lint)
            except NoFix as reason:
                self.tried[key] = reason
        if isinstance(self.tried[key], NoFix):
            raise self.tried[key]
        return self.tried[key]

    def accept(self, lint, change, verified):
        same = next((c for c in self.chosen if c.key() == change.key()), None)
        if same is None and _lint_edit.overlaps(change, self.chosen):
            self.leave(lint, "it overlaps with another fix: apply that and run again")
            return
        if same is None:
            self.chosen.append(change)
        kind = {"kind": "patch"} | (lint.fix or {})
        lint.fix = kind | {"text": verified.text(), "diff": _lint_edit.diff_of([change]), "before_us": verified.before_us,
                           "after_us": verified.after_us, "replacements": _lint_edit.replacements_of(change)}  # fmt: skip
        self.fixed.append((lint, change))

    def together(self):
        """All changes at once; the last ones are dropped until the rest agree."""
        verified = None
        while len(self.chosen) > 1:
            try:
                verified = _verify(self.baseline, self.chosen)
                break
            except NoFix as reason:
                dropped = self.chosen.pop()
                for lint, change in [f for f in self.fixed if f[1].key() == dropped.key()]:
                    self.fixed.remove((lint, change))
                    lint.fix = None
                    self.leave(lint, f"not together with the other fixes ({reason}): apply those and run again")
        return Patch(self.chosen, [lint for lint, _ in self.fixed], self.unfixed, verified)


def fix(lints, script, args=(), target="host", timeout=None):
    """Verified changes for the findings of `tokamak lint script.py`, as a Patch. Sets `fix` or `why_no_fix` of each finding."""
    with tempfile.TemporaryDirectory(prefix="tokamak-fix-") as folder:
        limit = timeout or None
        return _Fixer(lints, lambda watch: _Baseline(script, args, target, limit, folder, watch)).run()
