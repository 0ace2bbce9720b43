"""Python functions that compiled programs call.

A program contains custom calls @tokamak_py_callback with an id. The library calls `_call` with the arrays, from one
of its own threads; ctypes acquires the GIL. An entry lives as long as a lowered program (`Keep`) or a compiled one
(the library's hold) refers to it.

    lowering: id = register(f) ── Keep ──┐
                                         ├─► _entries[id] ─► f
    compiled program: hold(id, +1 / -1) ─┘
"""

import atexit
import ctypes
import functools
import itertools
import json
import secrets
import threading
import traceback

import ml_dtypes
import numpy as np

from tokamak import _library

TARGET = "tokamak_py_callback"

# HLO type names that differ in NumPy or ml_dtypes.
_NAMES = {
    "pred": "bool", "s8": "int8", "s16": "int16", "s32": "int32", "s64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16",
    "c64": "complex64", "c128": "complex128", "s4": "int4", "u4": "uint4", "s2": "int2", "u2": "uint2",
}  # fmt: skip


@functools.cache
def _dtype(hlo):
    name = _NAMES.get(hlo)
    if name is None and hlo.startswith("f"):  # f8e4m3fn is float8_e4m3fn
        digits = hlo[1:].partition("e")[0]
        name = f"float{digits}_{hlo[1 + len(digits):]}"
    narrow = getattr(ml_dtypes, name or "", None)
    try:
        return np.dtype(narrow if narrow is not None else name or hlo)
    except TypeError:
        raise TypeError(f"a callback cannot have arguments or results of type {hlo}") from None


class _Entry:
    __slots__ = ("function", "holders")

    def __init__(self, function):
        self.function = function
        self.holders = 1  # Keep


# Reentrant: a garbage collection may run Keep.__del__ at any allocation, even inside the lock.
_lock = threading.RLock()
_entries = {}
# Ids start at a random number, so that a program from another process does not match one of ours.
_ids = itertools.count(secrets.randbits(62))


def _hold(id_, change, _=None):
    dropped = None  # freed outside the lock: its destructors are arbitrary code
    with _lock:
        entry = _entries.get(id_)
        if entry is None:
            return
        entry.holders += change
        if entry.holders <= 0:
            dropped = _entries.pop(id_)
    del dropped


class Keep:
    """Keeps an entry alive for a lowered program."""

    __slots__ = ("__weakref__", "id")

    def __init__(self, id_):
        self.id = id_

    def __del__(self):
        _hold(self.id, -1)


def register(function):
    """Makes `function` callable by programs: it takes and returns NumPy arrays. Returns a Keep with its id."""
    connect()
    id_ = next(_ids)
    with _lock:
        _entries[id_] = _Entry(function)
        if not _library.has("tok_set_host_hold"):
            _entries[id_].holders += 1  # the end of the last program is unknown: keep it permanently
    return Keep(id_)


def count():
    """The number of registered functions."""
    return len(_entries)


def _view(array):
    """A NumPy array over the call's memory."""
    dtype = _dtype(array.type.decode())
    dims = tuple(array.dims[i] for i in range(array.rank))
    if array.bytes == 0 or 0 in dims:
        return np.empty(dims, dtype)
    memory = (ctypes.c_char * array.bytes).from_address(array.data)
    return np.frombuffer(memory, dtype).reshape(dims)


@functools.lru_cache(1024)
def _id(attributes):
    return json.loads(attributes)["id"]


def _run(call):
    entry = _entries.get(_id(call.attributes))
    if entry is None:
        raise RuntimeError("the program calls a Python function that does not exist in this process (any more)")
    # Copies: the callee may keep its arguments, but the memory belongs to the program.
    given = entry.function(*[_view(call.inputs[i]).copy() for i in range(call.num_inputs)])
    if len(given) != call.num_outputs:
        raise RuntimeError(f"the callback returned {len(given)} results, the program expects {call.num_outputs}")
    for i, value in enumerate(given):
        into, value = _view(call.outputs[i]), np.asarray(value)
        if value.shape != into.shape or value.dtype != into.dtype:
            raise RuntimeError(
                f"the callback returned {value.dtype}{list(value.shape)} as result {i}, "
                f"the program expects {into.dtype}{list(into.shape)}"
            )
        np.copyto(into, value)


_of_thread = threading.local()


def _stay():
    """Keeps the Python thread state of the library's thread. Otherwise each call would create a new one, and JAX its per-thread state."""
    if not getattr(_of_thread, "stays", False):
        ctypes.pythonapi.PyGILState_Ensure()  # never released: at count 0 the thread state would be destroyed
        _of_thread.stays = True


def is_calling():
    """Whether this is a thread of the library."""
    return getattr(_of_thread, "stays", False)


def _call(call, _):
    # No exception may leave this function: ctypes would print it and return 0, which means success.
    try:
        _stay()
        _run(call.contents)
        return 0
    except BaseException:  # including KeyboardInterrupt and SystemExit: they end this call, not the library's thread
        try:
            said = "Python callback raised an exception:\n" + traceback.format_exc().rstrip()
            _library.load().tok_host_call_fail(call, said.encode(errors="replace"))
        except BaseException:
            pass
        return 1


# ctypes does not keep these alive.
_call_pointer = _library.HOST_FN(_call)
_hold_pointer = _library.HOLD_FN(_hold)
_connected = False


def connect():
    """Registers the callbacks with the library, once. Raises if the library does not support them."""
    global _connected
    with _lock:
        if _connected:
            return
        library = _library.load()
        if not _library.has("tok_register_host_call"):
            raise NotImplementedError("this libtokamak.so cannot call Python functions: it is older than the package")
        if library.tok_register_host_call(TARGET.encode(), _call_pointer, None) != 0:
            raise RuntimeError(f"libtokamak.so rejected the function for {TARGET}")
        if _library.has("tok_set_host_hold"):
            library.tok_set_host_hold(TARGET.encode(), _hold_pointer, None)
        _connected = True
        atexit.register(_stop)


_before_stop = []


def before_stop(action):
    """Runs `action` at exit, while callbacks still work."""
    if action not in _before_stop:
        _before_stop.append(action)


def _stop():
    # A thread that requests the GIL during interpreter shutdown never returns: no call may start after
    # this. ctypes releases the GIL, so that calls in progress can finish.
    for action in _before_stop:
        try:
            action()
        except Exception:
            pass  # pending work failed; continue the exit
    if _library.has("tok_stop_host_calls"):
        _library.load().tok_stop_host_calls()
    else:
        _library.load().tok_register_host_call(TARGET.encode(), _library.HOST_FN(), None)
        _library.load().tok_wait_idle(2000)
