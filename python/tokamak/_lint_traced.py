"""Findings that the traced function (a jaxpr) shows and the compiled program does not, and those of the compiler with the
loops and expressions of the source that they are about."""

from tokamak import _lint_jax, _lint_keys, _lint_promotion, _lint_source
from tokamak._lint_result import Lint, is_same_rule, position

_NARROW_SHARE = 0.5  # of the time at a line that computes in the wider type: memory time follows the bytes (chosen)


def line_costs(report):
    """{"model.py:12": microseconds per call} of a compile report. A step's time is divided among its lines."""
    costs = {}
    for kernel in report.get("kernels", ()):
        us = (kernel.get("predicted_us") or 0) * (kernel.get("calls") or 1)
        for line in kernel["lines"]:
            at = position(line)
            if at:
                costs[at] = costs.get(at, 0) + us / len(kernel["lines"])
    return costs


def of_keys(jaxpr):
    for first, second in _lint_keys.reused(jaxpr):
        same = str(first.where) == str(second.where)
        at = "at this line" if same else f"at line {first.where.line}" if first.where else "before"
        text = f"a random key is {second.how}"
        if "each iteration" not in second.how:
            text += f" that was already {first.how.removesuffix(' in each iteration of a loop')} {at}"
        text += ": both give the same, or correlated, numbers; split the key, or fold a number in"
        yield Lint("lint.key-reuse", "warning", [str(second.where), *([] if same or not first.where else [str(first.where)])], 0.0, text)


def of_promotions(jaxpr, report):
    """`report`: a function that returns the compile report, called only if there is a promotion."""
    costs = None
    for promotion in _lint_promotion.found(jaxpr):
        costs = line_costs(report()) if costs is None else costs
        us = _NARROW_SHARE * costs.get((promotion.where.file, promotion.where.line), 0.0)
        rule = "lint.float64" if promotion.wide == "float64" else "lint.promotion"
        because = f"`{promotion.operand}`" if promotion.operand else "the other operand"
        shape = ",".join(map(str, promotion.shape))
        text = (f"{promotion.narrow}[{shape}] becomes {promotion.wide} because {because} is a strongly typed {promotion.wide} constant:"
                f" use a Python number, or give it the type {promotion.narrow}")  # fmt: skip
        more = {"operand": promotion.operand, "narrow": promotion.narrow, "column": promotion.where.column}
        yield Lint(rule, "warning", [str(promotion.where)], us, text, more=more)


def of_jaxpr(jaxpr, report):
    """All findings of a jaxpr."""
    return [*of_keys(jaxpr), *of_promotions(jaxpr, report)]


_MOST_CALLERS = 20  # equations of a line whose callers are looked at (chosen: a loop calls it from one place)


def _frames(at, jaxpr):
    """A line, and the lines that called the function that it is in while it was traced."""
    yield at
    count = 0
    for eqn in _lint_jax.equations(jaxpr) if jaxpr is not None else ():
        stack = _lint_jax.stack(eqn)
        if stack and (stack[0].file, stack[0].line) == at:
            yield from ((frame.file, frame.line) for frame in stack[1:])
            count += 1
            if count == _MOST_CALLERS:
                return


def located(lint, jaxpr=None):
    """A compiler's finding, or None. That of an unrolled loop gets the Python loop in the source. Without one around the line
    or its callers, the equal instructions are those of a formula, such as a polynomial of a library."""
    if not is_same_rule(lint.rule, "unrolled-loop") or "loop" in lint.more:
        return lint
    is_readable = False
    for at in dict.fromkeys(at for line in lint.lines if position(line) for at in _frames(position(line), jaxpr)):
        is_readable |= _lint_source.source_of(at[0]) is not None
        loop = _lint_source.loop_around(*at)
        if loop is not None:
            lint.more["loop"] = f"{at[0]}:{loop.lineno}"
            if not any(position(line) == (at[0], loop.lineno) for line in lint.lines):
                lint.lines.append(lint.more["loop"])
            return lint
    return None if is_readable else lint


def merged(compilers, own, jaxpr=None):
    """The findings of both. One that both have, of the same rule and line, is the compiler's (it has the cost) with the
    details of ours."""
    result = [lint for lint in (located(lint, jaxpr) for lint in compilers) if lint is not None]
    for lint in result:  # the user's lines first
        lint.lines.sort(key=lambda line: not _lint_jax.is_users((position(line) or ("<string>",))[0]))
    for lint in own:
        at = position(lint.lines[0]) if lint.lines else None
        same = next((o for o in result if o.rule == lint.rule and at in map(position, o.lines)), None)
        if same is None:
            result.append(lint)
        else:
            same.more = lint.more | same.more
            same.lines = list(dict.fromkeys(lint.lines + same.lines))
    return result
