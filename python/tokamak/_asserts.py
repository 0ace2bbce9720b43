"""Assertions for tests of users' programs: how many kernels, how much memory, no host steps, no second compilation."""

import contextlib
import json

from tokamak import _debug, _lint_jax
from tokamak._explain import Explanation, option_texts, traced
from tokamak._lint_result import number

_SHOWN_DECISIONS = 6  # rejected fusions that a message lists (chosen)
_MOST_TRIED = 8  # arguments whose donation is tried (chosen: each is a compilation)
_SHOWN_KERNELS = 12  # kernels that a message lists (chosen)


class NotFusedError(AssertionError):
    """assert_fused: the function runs as more kernels. `.report` is the compile report."""


class MemoryLimitError(AssertionError):
    """assert_memory_below: the peak is higher. `.report` is the compile report."""


class HostStepError(AssertionError):
    """assert_no_host_steps: a step runs on the host. `.report` is the compile report."""


class RecompileError(AssertionError):
    """assert_no_recompile: something was compiled again. `.compiled` lists what."""


def _failed(kind, lines, report):
    error = kind("\n".join(lines))
    error.report = report
    return error


class _Program:
    """A lowered function that can be explained under several options."""

    def __init__(self, f, args, kwargs, target, options):
        self.text = traced(f, args, kwargs).lower().as_text(debug_info=True).encode()
        self.name = getattr(f, "__name__", "f")
        self.options = {"target": target, **option_texts(options)}

    def report(self, **more):
        return json.loads(Explanation(self.text, self.name, {**self.options, **more})._ask(json="true", compare="false"))


def _kernel_line(i, kernel):
    what = kernel["library"] or kernel["generator"]
    us = "" if kernel["predicted_us"] is None else f"{number(kernel['predicted_us'])} us"
    calls = "" if kernel["calls"] in (1, None) else f" x {kernel['calls']}"
    where = ", ".join(kernel["lines"][:3]) or "no source line"
    return f"  {i}. {kernel['name']}  {what}  {kernel['ops']} ops  {us}{calls}  {where}"


def _kernel_lines(kernels):
    shown = [_kernel_line(i, kernel) for i, kernel in enumerate(kernels[:_SHOWN_KERNELS], 1)]
    more = len(kernels) - _SHOWN_KERNELS
    return shown + ([f"  and {more} more"] if more > 0 else [])


def _decision_lines(report):
    """The rejected fusions between the kernels, the last record of each pair."""
    kernel_of = {name: i for i, kernel in enumerate(report["kernels"]) for name in kernel["instrs"]}
    pairs = {}
    for decision in report["decisions"]:
        ends = kernel_of.get(decision["subject"]), kernel_of.get(decision["other"])
        if decision["verdict"] == "rejected" and None not in ends and ends[0] != ends[1]:
            pairs[ends] = decision
    lines = []
    for decision in list(pairs.values())[:_SHOWN_DECISIONS]:
        costs = ""
        if decision["before_us"] or decision["after_us"]:
            costs = f"; {number(decision['before_us'])} us apart, {number(decision['after_us'])} us fused"
        lines.append(f"  {decision['subject']} -> {decision['other']}: rejected by {decision['rule']} ({decision['because']}{costs})")
        if decision["counterfactual"]:
            lines.append(f"    {decision['counterfactual']}")
    return lines


def _forced(program, report, wanted):
    """The result of asking the compiler to fuse everything, in words."""
    names = [name for kernel in report["kernels"] for name in kernel["instrs"]]
    try:
        forced = program.report(tokamak_fuse=",".join(names))
    except ValueError as error:
        return [f"with tokamak.require_fused(): {str(error).splitlines()[0]}"]
    before, after = report["fused"], forced["fused"]
    if after["steps"] < before["steps"]:
        reached = "" if after["steps"] <= wanted else ", still more than expected"
        return [f"with tokamak.fuse() around these lines: {after['steps']} kernels{reached},"
                f" {number(after['predicted_us'])} us instead of {number(before['predicted_us'])} us"]  # fmt: skip
    try:
        program.report(tokamak_require_fused=",".join(names))
    except ValueError as error:
        reason = [line.strip() for line in str(error).splitlines() if line.strip()]
        return ["nothing short of another program; tokamak.require_fused() says:", *(f"  {line}" for line in reason[:_SHOWN_DECISIONS])]
    return ["with tokamak.fuse() around these lines: the same kernels"]


def assert_fused(f, *args, kernels=1, tokamak_target="host", tokamak_options=None, **kwargs):
    """Fails if `f(*args, **kwargs)` runs as more than `kernels` steps: kernels, library calls, host steps and copies, those of a
    loop counted once. The message lists them with their lines, why they were not fused, and what would help. Returns the
    compile report."""
    program = _Program(f, args, kwargs, tokamak_target, tokamak_options)
    report = program.report()
    found = report["kernels"]
    if len(found) <= kernels and "interpreted" not in report:
        return report
    if "interpreted" in report:
        raise _failed(NotFusedError, [f"{program.name} has no kernels: the interpreter runs it: {report['interpreted']}"], report)
    lines = [f"{program.name} runs as {len(found)} kernels, at most {kernels} expected (target {report['target']})", *_kernel_lines(found)]
    if decisions := _decision_lines(report):
        lines += ["why they are apart:", *decisions]
    lines += ["what would help:", *(f"  {line}" for line in _forced(program, report, kernels))]
    if report["host_steps"]:
        lines.append("  steps on the host cannot be fused: see assert_no_host_steps")
    raise _failed(NotFusedError, lines, report)


def assert_no_host_steps(f, *args, tokamak_target="host", tokamak_options=None, **kwargs):
    """Fails if a step of `f(*args, **kwargs)` runs on the host: a callback, or an op without a kernel. Returns the compile
    report."""
    program = _Program(f, args, kwargs, tokamak_target, tokamak_options)
    report = program.report()
    if "interpreted" in report:
        raise _failed(HostStepError, [f"the interpreter runs all of {program.name}: {report['interpreted']}"], report)
    host = [kernel for kernel in report["kernels"] if kernel["generator"] == "host"]
    if not host and not report["host_steps"]:
        return report
    lines = [f"{program.name} has {len(host) or report['host_steps']} steps on the host (target {report['target']})"]
    for kernel in host:
        lines.append(f"  {kernel['name']}: {kernel.get('why') or 'runs on the host'}  {', '.join(kernel['lines'][:3]) or 'no source line'}")
    lines += ["what would help:", "  a callback: return the value from the function, and call the host after it",
              "  an op without a kernel: `tokamak ops` lists what has kernels"]  # fmt: skip
    raise _failed(HostStepError, lines, report)


def _size(count):
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"


def _donated(f, args, kwargs, target, options, peak):
    """The peak if the arguments that could be donated are."""
    import jax

    if hasattr(f, "trace") and any(getattr(info, "donated", False) for info in jax.tree.leaves(traced(f, args, kwargs).args_info)):
        return []
    plain = getattr(f, "__wrapped__", f)
    is_array = [all(hasattr(leaf, "dtype") for leaf in jax.tree.leaves(arg)) and bool(jax.tree.leaves(arg)) for arg in args]
    numbers = tuple(i for i, yes in enumerate(is_array) if yes)
    static = tuple(i for i, yes in enumerate(is_array) if not yes)

    def peak_with(donated):
        donating = jax.jit(plain, donate_argnums=donated, static_argnums=static)
        return _Program(donating, args, kwargs, target, options).report()["fused"]["peak_bytes"]

    useful, after = (), peak
    try:
        for i in numbers[:_MOST_TRIED]:
            if (lower := peak_with((*useful, i))) < after:
                useful, after = (*useful, i), lower
    except Exception:  # the function cannot be traced so: no advice
        return []
    return [f"  jax.jit(..., donate_argnums={useful}): {_size(after)}, if the caller does not use them again"] if after < peak else []


def assert_memory_below(f, *args, bytes, tokamak_target="host", tokamak_options=None, **kwargs):
    """Fails if the peak memory of `f(*args, **kwargs)`, arguments, results, constants and temporary arrays, is `bytes` or more.
    Returns the compile report."""
    program = _Program(f, args, kwargs, tokamak_target, tokamak_options)
    report = program.report()
    peak, temporary = report["fused"]["peak_bytes"], report["fused"]["temporary_bytes"]
    if peak < bytes:
        return report
    lines = [f"{program.name} needs {_size(peak)} ({peak} bytes) at its peak, less than {_size(bytes)} expected (target {report['target']})",
             f"  {_size(temporary)} of it are temporary arrays; the steps that write most:"]  # fmt: skip
    largest = sorted(report["kernels"], key=lambda kernel: -(kernel["writes_bytes"] or 0))[:_SHOWN_DECISIONS]
    for kernel in largest:
        lines.append(f"  {_size(kernel['writes_bytes'])}  {kernel['name']}  {', '.join(kernel['lines'][:3]) or 'no source line'}")
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX warns of donated arguments that no result can use
        advice = _donated(f, args, kwargs, tokamak_target, tokamak_options, peak)
    advice += ["  jax.checkpoint around a layer: its intermediate values are computed again instead of kept"] if temporary > peak / 4 else []
    advice += ["  smaller batches, or a narrower type such as bfloat16"]
    raise _failed(MemoryLimitError, [*lines, "what would help:", *advice], report)


# ---- compilations


def _shown(leaf):
    import jax

    if not hasattr(leaf, "dtype") and not isinstance(leaf, (bool, int, float, complex)):
        return repr(leaf)
    aval = jax.typeof(leaf)
    weak = " (weakly typed)" if getattr(aval, "weak_type", False) else ""
    return aval.str_short() + weak if hasattr(aval, "str_short") else str(aval) + weak


def _arguments(args, kwargs):
    import jax

    leaves, tree = jax.tree_util.tree_flatten_with_path((args, kwargs))
    named = {}
    for path, leaf in leaves:
        which = f"argument {path[1].idx}" if path[0].idx == 0 else f"argument {path[1].key}"
        named[which + jax.tree_util.keystr(path[2:])] = _shown(leaf)
    return named, tree


def _difference(before, after):
    (old, old_tree), (new, new_tree) = before, after
    changed = [f"{name} was {old[name]}, is {new[name]}" for name in new if name in old and old[name] != new[name]]
    if not changed and old_tree != new_tree:
        changed = ["the arguments have another structure"]
    return changed or ["the arguments are alike: a static argument, a global, or the function itself (a new jax.jit or lambda) changed"]


_HELP = {
    "shape": "pad to a few sizes, or jit with the largest one: each shape is compiled",
    "weak": "pass jnp.float32(x) or an array each time: a Python number is weakly typed, which is another type",
    "alike": "call jax.jit once, outside of the loop, on a function that is defined once",
}


def _help_for(changes):
    text = " ".join(changes)
    if "alike" in text:
        return _HELP["alike"]
    return _HELP["weak"] if "weakly" in text else _HELP["shape"]


class _Compiled:
    """The compilations of this process: (function name, user's line)."""

    def __init__(self, name=None):
        self.name, self.events = name, []

    def phase(self, function, phase, _seconds):
        if phase == "compile" and self.name in (None, function):
            stack = _lint_jax.users_stack()
            self.events.append((function, f"{stack[0][0]}:{stack[0][1]} ({stack[0][2]})" if stack else "an unknown line"))


def _as_call(call):
    is_pair = isinstance(call, tuple) and len(call) == 2 and isinstance(call[0], tuple) and isinstance(call[1], dict)
    return call if is_pair else (call if isinstance(call, tuple) else (call,), {})


def _check_calls(f, calls):
    import jax

    jitted = f if hasattr(f, "trace") else jax.jit(f)
    compiled, before = _Compiled(getattr(f, "__name__", None)), None
    with _debug.hearing(compiled.phase):
        for i, call in enumerate(calls):
            args, kwargs = _as_call(call)
            count = len(compiled.events)
            now = _arguments(args, kwargs)  # before the call, which may donate them
            jitted(*args, **kwargs)
            if i and len(compiled.events) > count:
                changes = _difference(before, now)
                name = compiled.name or "the function"
                error = RecompileError("\n".join([f"{name} is compiled again at call {i + 1} of {len(calls)}:", *(f"  {c}" for c in changes),
                                                  "what would help:", f"  {_help_for(changes)}"]))  # fmt: skip
                error.compiled = compiled.events[count:]
                raise error
            before = now


@contextlib.contextmanager
def _no_compile(f, allowed):
    compiled = _Compiled(getattr(f, "__name__", None))
    with _debug.hearing(compiled.phase):
        yield compiled
    if len(compiled.events) > allowed:
        lines = [f"{len(compiled.events)} compilations, at most {allowed} expected:"]
        lines += [f"  {name} at {at}" for name, at in compiled.events[:_SHOWN_KERNELS]]
        lines += ["what would help:", "  call the functions once with the same shapes and types before (a warm-up)",
                  "  `tokamak lint script.py` says which argument changes (lint.retrace, lint.jit-in-loop)"]  # fmt: skip
        error = RecompileError("\n".join(lines))
        error.compiled = list(compiled.events)
        raise error


def assert_no_recompile(f=None, calls=None, *, allowed=0):
    """Fails if a function is compiled again.

    With `calls`, a list of argument tuples (or of (args, kwargs) pairs), calls `f` with each and fails if a call after the
    first compiles. Without, it is a context manager: `with tokamak.assert_no_recompile(f):` fails if `f` (None: anything) is
    compiled more than `allowed` times inside."""
    if calls is None:
        return _no_compile(f, allowed)
    return _check_calls(f, list(calls))
