"""The private names of JAX that the lint uses. Each is guarded: if a newer JAX lacks one, the findings that need it are missing,
and `missing` says which. Tested with JAX 0.10.2 and 0.11.2 (python/tests/test_jax_names.py)."""

import contextlib
import functools
import os
import sys
import threading
import time
import weakref

missing = {}  # what is off -> why


def guarded(what):
    """A context in which a name that JAX lacks turns `what` off."""

    @contextlib.contextmanager
    def guard():
        try:
            yield
        except (ImportError, AttributeError, KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
            missing[what] = f"{type(error).__name__}: {error}"

    return guard()


@functools.cache
def _library_folders():
    """Folders whose files are not the user's: those of JAX, of this package and of installed packages."""
    import sysconfig

    import jax

    folders = {os.path.dirname(jax.__file__), os.path.dirname(__file__)}
    folders |= {path for name, path in sysconfig.get_paths().items() if name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return tuple(sorted(folder.rstrip(os.sep) + os.sep for folder in folders if folder))


@functools.cache
def is_users(path):
    """Whether a file is the user's."""
    return not path.startswith(("<frozen", "<string")) and not path.startswith(_library_folders())


@functools.cache
def _jax_folder():
    import jax

    return os.path.dirname(jax.__file__) + os.sep


def is_jax(path):
    return path.startswith(_jax_folder()) or path == ""


# ---- source lines of a jaxpr


class Where:
    """A place in the user's source: of an equation, with the columns of its expression."""

    __slots__ = ("column", "end_column", "end_line", "file", "function", "line")

    def __init__(self, frame):
        self.file, self.line, self.function = frame.file_name, frame.start_line, frame.function_name
        self.column, self.end_line, self.end_column = frame.start_column, frame.end_line, frame.end_column

    def __str__(self):
        return f"{self.file}:{self.line} ({self.function})"


def where(eqn):
    """The innermost line of the user's that made an equation, or None."""
    with guarded("source lines of traced programs"):
        from jax._src import source_info_util

        other = None
        for frame in source_info_util.user_frames(eqn.source_info.traceback):
            if is_users(frame.file_name):
                return Where(frame)
            other = other or frame
        return Where(other) if other else None
    return None


def stack(eqn):
    """All lines of the user's that made an equation, the innermost first."""
    with guarded("source lines of traced programs"):
        from jax._src import source_info_util

        return [Where(f) for f in source_info_util.user_frames(eqn.source_info.traceback) if is_users(f.file_name)]
    return []


def inner_jaxprs(eqn):
    """The jaxprs among an equation's parameters (branches, bodies, called functions)."""
    for value in eqn.params.values():
        for one in value if isinstance(value, (tuple, list)) else (value,):
            one = getattr(one, "jaxpr", one)
            if hasattr(one, "eqns") and hasattr(one, "invars"):
                yield one


def equations(jaxpr):
    """All equations, those of inner jaxprs too."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in inner_jaxprs(eqn):
            yield from equations(inner)


def is_literal(atom):
    return hasattr(atom, "val")


def source_of(jaxpr):
    """(function name, file, line) of the Python function that was traced."""
    info = getattr(getattr(jaxpr, "debug_info", None), "func_src_info", None) or ""
    name, _, at = info.partition(" at ")
    file, _, line = at.rpartition(":")
    return (name, file, int(line)) if line.isdigit() else (name or "?", "", 0)


def argument_names(jaxpr):
    return list(getattr(getattr(jaxpr, "debug_info", None), "arg_names", None) or ())


# ---- calls of compiled functions


class Call:
    """One execution of a compiled function from Python."""

    __slots__ = ("args", "computation", "donated", "jaxpr", "name", "outs", "seconds")


_lowered = []  # functions to call with the jaxpr of each program that is lowered, once
_known_computations = weakref.WeakSet()
_callers = []  # functions to call with each Call
_reading = []  # functions to call with each array that is copied to the host, and the seconds


class _Calls(threading.local):
    """Of this thread: the computation of each call in progress, the innermost last."""

    def __init__(self):
        self.computations = []


_in_progress = _Calls()


def _on_lower(of_jax):
    @functools.wraps(of_jax)
    def resolve_and_lower(*args, **keywords):
        computation = of_jax(*args, **keywords)
        if _in_progress.computations:
            _in_progress.computations[-1] = computation
        if _lowered and computation not in _known_computations:
            _known_computations.add(computation)
            for tell in _lowered:
                tell(keywords["jaxpr"].jaxpr)
        return computation

    return resolve_and_lower


def _on_call(of_jax):
    @functools.wraps(of_jax)
    def call_impl(*args, **keywords):
        if not _callers:
            return of_jax(*args, **keywords)
        call = Call()
        call.args, call.jaxpr = args, keywords.get("jaxpr")
        call.name, call.donated = keywords.get("name", "?"), keywords.get("donated_invars", ())
        _in_progress.computations.append(None)
        begin = time.perf_counter()
        try:
            result = of_jax(*args, **keywords)
            call.seconds = time.perf_counter() - begin
        finally:
            call.computation = _in_progress.computations.pop()
        call.outs = result[0]
        for tell in list(_callers):
            with guarded("some calls of compiled functions"):  # the program goes on without advice
                tell(call)
        return result

    return call_impl


def _on_fast_path(of_jax):
    @functools.wraps(of_jax)
    def get_fastpath_data(*args, **keywords):
        return None if _callers else of_jax(*args, **keywords)  # every call passes by _on_call

    return get_fastpath_data


def _on_value(of_jax):
    @functools.wraps(of_jax)
    def value(self):
        if not _reading or self._npy_value is not None:
            return of_jax(self)
        begin = time.perf_counter()
        result = of_jax(self)
        for tell in list(_reading):
            tell(self, time.perf_counter() - begin)
        return result

    return property(value)


@functools.cache
def _install_calls():
    with guarded("calls of compiled functions"):
        from jax._src import pjit

        names = {"_pjit_call_impl_python": _on_call, "_resolve_and_lower": _on_lower, "_get_fastpath_data": _on_fast_path}
        hooks = {name: wrap(getattr(pjit, name)) for name, wrap in names.items()}
        for name, hook in hooks.items():
            setattr(pjit, name, hook)


@functools.cache
def _install():
    _install_calls()
    with guarded("copies of arrays to the host"):
        import jax
        from jax._src import array

        jax.devices()  # the plugin replaces _value when it is initialized: this must come later
        array.ArrayImpl._value = _on_value(array.ArrayImpl._value.fget)


def on_first_lowering(tell):
    """Calls `tell` with the jaxpr of each program that is lowered from now on."""
    _install_calls()
    _lowered.append(tell)


@contextlib.contextmanager
def calls(tell, read=None):
    """Tells of each call of a compiled function and of each copy of an array to the host that this process makes inside."""
    _install()
    _callers.append(tell)
    if read:
        _reading.append(read)
    try:
        yield
    finally:
        _callers.remove(tell)
        if read:
            _reading.remove(read)


def program_text(computation):
    """The StableHLO text of a call's computation, with source lines; "" if JAX does not give it."""
    with guarded("texts of compiled programs"):
        return computation.stablehlo().operation.get_asm(enable_debug_info=True)
    return ""


def is_concrete(value):
    """Whether a value is an array with elements, not one that is being traced."""
    with guarded("arrays"):
        from jax._src import core

        return not isinstance(value, core.Tracer)
    return True


def base_array(value):
    """The array that holds a key's bits; other values unchanged."""
    return getattr(value, "_base_array", value)


_DEPTH = 8  # frames of the user's that are kept (chosen: enough to find the loop that calls a helper)


def users_stack():
    """(file, line, function) of the user's frames of this thread, the innermost first."""
    return call_path()[0]


def call_path():
    """(users_stack(), a number for the path of calls with those of libraries): equal paths are the same call, made again."""
    frame, found, path = sys._getframe(2), [], 0
    while frame is not None and len(found) < _DEPTH:
        code = frame.f_code
        path = hash((path, id(code), frame.f_lasti))
        if is_users(code.co_filename):
            found.append((code.co_filename, frame.f_lineno, code.co_qualname))
        frame = frame.f_back
    return tuple(found), path
