"""`with tokamak.debug():` reports on each jit inside it."""

import contextlib
import json
import os
import re
import sys
import threading

from tokamak import _library

# JAX's names of its phases (jax.monitoring, a public API).
_PHASES = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}


def _plain(name):
    """jit(f) and f are the same function."""
    name = str(name)
    return name[4:-1] if name.startswith("jit(") and name.endswith(")") else name


def _key(name):
    """A common key for JAX's and the library's name of a function: <lambda> is compiled as jit__lambda."""
    return re.sub(r"\W", "_", _plain(name).removeprefix("jit_")).strip("_")


def _ms(seconds):
    return f"{seconds * 1e3:.1f} ms"


class _Report:
    def __init__(self, file):
        self.file = file
        self.lock = threading.Lock()
        self.spent = {}  # key -> phase -> seconds
        self.built = {}  # key -> the library's compile event
        self.names = {}  # key -> the user's name

    def print(self, line):
        print("tokamak: " + line, file=self.file or sys.stderr, flush=True)

    def phase(self, function, phase, seconds):
        key = _key(function)
        with self.lock:
            self.names[key] = function
            spent = self.spent.setdefault(key, {})
            spent[phase] = spent.get(phase, 0) + seconds
            if phase != "compile":
                return
            del self.spent[key]
            built = self.built.pop(key, {})
        line = function + ": " + ", ".join(f"{name} {_ms(spent[name])}" for name in _PHASES.values() if name in spent)
        parts = [f"{name} {_ms(built[key] / 1e6)}" for name, key in
                 (("read", "read_us"), ("verify", "verify_us"), ("passes", "passes_us"), ("prepare", "prepare_us")) if key in built]  # fmt: skip
        if "backend" in built:
            parts.append(f"on {built['backend']}")
        if "instructions" in built:
            parts.append(f"{built['instructions']} instructions")
        if built.get("cache", "none") != "none":
            parts.append(f"from the cache in {'memory' if built['cache'] == 'memory' else 'files'}")
        self.print(line + (f" ({', '.join(parts)})" if parts else ""))
        for fallback in built.get("fallbacks", ()):
            self.print(f"{function}: falls back: {fallback}")

    def add_event(self, event):
        key = _key(event.get("name", "?"))
        if event.get("event") == "compile":
            with self.lock:
                self.built[key] = event
        elif event.get("event") == "explain":
            self.print(f"{self.names.get(key, key)}:\n{event.get('text', '').rstrip()}")
        elif event.get("event") == "first_run":
            self.print(f"{self.names.get(key, key)}: first run {_ms(event.get('run_us', 0) / 1e6)}")


_reports = []
_on_phases = []
_listening = False


def _on_phase(name, seconds, **details):
    phase = _PHASES.get(name)
    if phase is not None and "fun_name" in details:
        for on_phase in (*_on_phases, *(report.phase for report in list(_reports))):
            on_phase(_plain(details["fun_name"]), phase, seconds)


def _on_event(text, _):
    try:
        event = json.loads(text.decode())
        for report in list(_reports):
            report.add_event(event)
    except Exception as error:  # must not reach the library
        print(f"tokamak: debug: {error!r}", file=sys.stderr)


_pointer = _library.REPORT_FN(_on_event)


def _listen():
    global _listening
    if not _listening:
        import jax.monitoring

        jax.monitoring.register_event_duration_secs_listener(_on_phase)
        _listening = True


_PATIENCE_MS = 10_000  # milliseconds to wait for first runs started inside (chosen)


def _register_report_callback():
    if _library.has("tok_set_report"):
        _library.load().tok_set_report(_pointer if _reports else _library.REPORT_FN(), None)


def add_permanent(on_phase):
    """Calls `on_phase(function, phase, seconds)` after each phase of a compilation, until the process ends."""
    _listen()
    _on_phases.append(on_phase)


@contextlib.contextmanager
def hearing(on_phase):
    """Calls `on_phase(function, phase, seconds)` after each phase of a compilation inside, on the thread that compiles."""
    add_permanent(on_phase)
    try:
        yield
    finally:
        _on_phases.remove(on_phase)


@contextlib.contextmanager
def _asking(explain):
    """Sets TOKAMAK_DEBUG for the library."""
    before = os.environ.get("TOKAMAK_DEBUG")
    if explain:
        os.environ["TOKAMAK_DEBUG"] = "decisions" if explain == "decisions" else "explain"
    try:
        yield
    finally:
        if explain and before is None:
            del os.environ["TOKAMAK_DEBUG"]
        elif explain:
            os.environ["TOKAMAK_DEBUG"] = before


@contextlib.contextmanager
def debug(file=None, explain=False):
    """Prints a line for each function that is compiled inside, to `file` (stderr by default): how long tracing,
    lowering and compiling took, its backend and fallbacks; and how long its first run took. With explain=True
    also its kernels, as in tokamak.explain(); with explain="decisions" every decision as well."""
    with _asking(explain):
        yield from _debug(file)


def _debug(file):
    _listen()
    report = _Report(file)
    _reports.append(report)
    _register_report_callback()
    try:
        yield
        if _library.has("tok_wait_idle"):
            _library.load().tok_wait_idle(_PATIENCE_MS)
    finally:
        _reports.remove(report)
        _register_report_callback()
