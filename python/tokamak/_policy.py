"""Compiler plugins, and policies written in Python: functions that the fusion planner asks about its moves, and that lowering asks
about the order of steps. docs/plugins.md is the manual.

    @tokamak.policy                              # until tokamak.remove_policy(decide)
    def decide(move):
        if "rsqrt" in move.producer_ops:
            return "veto"

    with tokamak.fusion_policy(decide): ...       # for what is compiled inside
"""

import contextlib
import ctypes
import math
import sys
import threading
import traceback
from typing import NamedTuple

from tokamak import _library

_ANSWERS = {"accept": 1, "veto": 2}
_WEIGHT = 3


class Move(NamedTuple):
    """The facts of a move of the fusion planner: it puts other instructions into one kernel. Costs are the planner's estimates."""

    rule: str  # "fusion.vertical", "fusion.merge" ...
    subject: str  # the name of the value that the move is about
    other: str  # the name of a second value, usually the result of the consumer
    subject_op: str
    other_op: str
    shape: str  # of the subject: "f32[64,1024]"
    producer_ops: tuple  # ops of the kernel that computes the subject
    consumer_ops: tuple  # ops of the other kernels that the move replaces
    names: tuple  # of all instructions of these kernels
    sources: tuple  # their source lines: "train.py:12"
    scopes: tuple  # their scopes: "jit(f)/norm/mul", with "composite:NAME" for those of a composite
    before_us: float
    after_us: float
    saved_bytes: float
    kernels_before: int
    kernels_after: int
    registers: float  # of the largest kernel after the move, per thread; 0: unknown
    instructions: int  # of that kernel

    def comes_from(self, text):
        """Whether a source line or scope contains the text: "train.py:12", "attention", "composite:my.norm"."""
        return any(text in word for word in self.sources + self.scopes)


class Step(NamedTuple):
    """A step that could run next."""

    name: str
    ops: tuple
    kind: str  # "kernel", "library", "loop", "conditional", "host" or "alias"
    sources: tuple
    scopes: tuple
    result_bytes: float
    released_bytes: float
    position: int  # in the order without a policy
    ready: int  # number of steps that could run next


class _TokMove(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t), ("rule", ctypes.c_char_p), ("subject", ctypes.c_char_p), ("other", ctypes.c_char_p),
        ("subject_op", ctypes.c_char_p), ("other_op", ctypes.c_char_p), ("shape", ctypes.c_char_p),
        ("producer_ops", ctypes.c_char_p), ("consumer_ops", ctypes.c_char_p), ("names", ctypes.c_char_p),
        ("sources", ctypes.c_char_p), ("scopes", ctypes.c_char_p), ("before_us", ctypes.c_double),
        ("after_us", ctypes.c_double), ("saved_bytes", ctypes.c_double), ("kernels_before", ctypes.c_int32),
        ("kernels_after", ctypes.c_int32), ("registers", ctypes.c_double), ("instructions", ctypes.c_int32),
    ]  # fmt: skip


class _TokStep(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("ops", ctypes.c_char_p), ("kind", ctypes.c_char_p),
        ("sources", ctypes.c_char_p), ("scopes", ctypes.c_char_p), ("result_bytes", ctypes.c_double),
        ("released_bytes", ctypes.c_double), ("position", ctypes.c_int32), ("ready", ctypes.c_int32),
    ]  # fmt: skip


_DECIDE_FN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_TokMove), ctypes.POINTER(ctypes.c_double), ctypes.c_void_p)
_PRIORITY_FN = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.POINTER(_TokStep), ctypes.c_void_p)


class _TokFusionPolicy(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("decide", _DECIDE_FN), ("user", ctypes.c_void_p)]


class _TokOrderPolicy(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("priority", _PRIORITY_FN), ("user", ctypes.c_void_p)]


class PluginError(RuntimeError):
    """A plugin cannot be loaded, or a policy cannot be registered."""


def _call(name, *arguments):
    if not _library.has(name):
        raise PluginError(f"libtokamak.so is older than this package: it lacks {name}")
    _library.check(getattr(_library.load(), name)(*arguments), PluginError)


def load_plugin(path):
    """Loads a compiler plugin (docs/plugins.md) for everything that this process compiles from now on. Raises PluginError."""
    _call("tok_load_plugin", str(path).encode())


def plugins():
    """The loaded plugins: a list of dicts with name, version, path, and the names of their passes, generators, hooks and policies."""
    return _library.query_json("tok_plugins", [])


def _words(text):
    return tuple(text.decode(errors="replace").split(",")) if text else ()


def _fields(struct, kind, lists):
    values = []
    for field in kind._fields:
        value = getattr(struct, field)
        values.append(_words(value) if field in lists else value.decode(errors="replace") if isinstance(value, bytes) else value)
    return kind(*values)


def _fail(function):
    """Passes the exception being handled on to the library, with its location."""
    kind, error, trace = sys.exc_info()
    frames = traceback.extract_tb(trace)
    at = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    text = f"{function.__name__ if hasattr(function, '__name__') else 'the policy'} raises {kind.__name__}{at}: {error}"
    _library.load().tok_policy_fail(text.encode(errors="replace"))


def _decide_of(function):
    lists = {"producer_ops", "consumer_ops", "names", "sources", "scopes"}

    def decide(move, weight, _):
        try:
            answer = function(_fields(move.contents, Move, lists))
            if answer is None:
                return 0
            if isinstance(answer, str):
                if answer not in _ANSWERS:
                    raise ValueError(f"a fusion policy returns None, 'accept', 'veto' or a weight, not {answer!r}")
                return _ANSWERS[answer]
            if isinstance(answer, bool) or not math.isfinite(float(answer)) or float(answer) < 0:
                raise ValueError(f"a fusion policy returns None, 'accept', 'veto' or a weight of at least 0, not {answer!r}")
            weight[0] = float(answer)
            return _WEIGHT
        except BaseException:  # noqa: B902 - nothing may pass through C
            _fail(function)
            return -1

    return _DECIDE_FN(decide)


def _priority_of(function):
    lists = {"ops", "sources", "scopes"}

    def priority(step, _):
        try:
            answer = function(_fields(step.contents, Step, lists))
            return math.nan if answer is None else float(answer)
        except BaseException:  # noqa: B902
            _fail(function)
            return math.nan

    return _PRIORITY_FN(priority)


_lock = threading.Lock()
_active = {}  # id -> (function, what ctypes needs to stay alive)
_kept = []  # of removed policies: a compilation on another thread may still be running


def _name_of(function):
    name = getattr(function, "__qualname__", type(function).__name__).replace("<locals>.", "").replace("<lambda>", "lambda")
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)


def _add(function, struct, wrapper, entry):
    if not callable(function):
        raise TypeError(f"tokamak: a policy is a function, not {type(function).__name__}")
    callback = wrapper(function)
    policy = struct(ctypes.sizeof(struct), _name_of(function).encode(), callback, None)
    id_ = ctypes.c_uint64()
    _call(entry, ctypes.byref(policy), ctypes.byref(id_))
    with _lock:
        _active[id_.value] = (function, policy, callback)
    return id_.value


def _remove(id_):
    with _lock:
        entry = _active.pop(id_, None)
        if entry is not None:
            _kept.append(entry[1:])
    if entry is not None:
        _library.load().tok_remove_policy(id_)


def policy(function):
    """Adds a fusion policy for everything that is compiled from now on; usable as a decorator. `function(move)` returns None (no
    opinion), "accept" (make the move whatever it costs, if it is legal), "veto", or a weight: how many times as attractive the
    result is. tokamak.fuse, never_fuse and require_fused take precedence. Programs that are compiled already stay."""
    _add(function, _TokFusionPolicy, _decide_of, "tok_add_fusion_policy")
    return function


def order_policy(function):
    """Adds a policy for the order of steps: `function(step)` returns None, or a priority. Of the steps that could run next, the one
    with the highest priority is first; the default is 0. A program has one stream, so steps cannot be placed on several."""
    _add(function, _TokOrderPolicy, _priority_of, "tok_add_order_policy")
    return function


def remove_policy(function):
    """Removes a policy that policy() or order_policy() added."""
    with _lock:
        ids = [id_ for id_, entry in _active.items() if entry[0] is function]
    if not ids:
        raise ValueError(f"tokamak.remove_policy: {_name_of(function)} is not an active policy")
    for id_ in ids:
        _remove(id_)


@contextlib.contextmanager
def _while_active(function, struct, wrapper, entry):
    id_ = _add(function, struct, wrapper, entry)
    try:
        yield function
    finally:
        _remove(id_)


def fusion_policy(function):
    """`with tokamak.fusion_policy(function):` a fusion policy for what is compiled inside, by any thread (see policy). A function
    that was compiled before is not compiled again: use a new jax.jit, or jax.clear_caches()."""
    return _while_active(function, _TokFusionPolicy, _decide_of, "tok_add_fusion_policy")


def ordered_by(function):
    """`with tokamak.ordered_by(function):` an order policy for what is compiled inside (see order_policy)."""
    return _while_active(function, _TokOrderPolicy, _priority_of, "tok_add_order_policy")
