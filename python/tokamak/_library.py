"""Finds libtokamak.so and declares its C API (include/tokamak/c_api.h)."""

import ctypes
import functools
import json
import os
import pathlib

NAME = "libtokamak.so"


class TokArray(ctypes.Structure):
    """tok_array: dense, row-major; elements narrower than 8 bits occupy a byte each."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("type", ctypes.c_char_p),  # as in HLO: b"f32"
        ("rank", ctypes.c_int64),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
    ]


class TokHostCall(ctypes.Structure):
    """tok_host_call. Inputs and outputs exclude tokens."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("target", ctypes.c_char_p),
        ("attributes", ctypes.c_char_p),  # JSON
        ("opaque", ctypes.c_void_p),
        ("opaque_size", ctypes.c_size_t),
        ("num_inputs", ctypes.c_size_t),
        ("inputs", ctypes.POINTER(TokArray)),
        ("num_outputs", ctypes.c_size_t),
        ("outputs", ctypes.POINTER(TokArray)),
        ("device", ctypes.c_int64),
    ]


class TokFragment(ctypes.Structure):
    """tok_fragment"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("module", ctypes.c_void_p),
        ("operands", ctypes.POINTER(ctypes.c_int64)),
        ("num_operands", ctypes.c_size_t),
        ("beside", ctypes.c_int64),
    ]


class TokMatch(ctypes.Structure):
    """tok_match"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("results", ctypes.POINTER(ctypes.c_int64)),
        ("num_results", ctypes.c_size_t),
        ("variables", ctypes.POINTER(ctypes.c_int64)),
        ("num_variables", ctypes.c_size_t),
        ("inner", ctypes.POINTER(ctypes.c_int64)),
        ("num_inner", ctypes.c_size_t),
    ]


class TokRuleExample(ctypes.Structure):
    """tok_rule_example"""

    _fields_ = [
        ("pattern", ctypes.c_char_p),
        ("pattern_size", ctypes.c_size_t),
        ("replacement", ctypes.c_char_p),
        ("replacement_size", ctypes.c_size_t),
    ]


class TokOption(ctypes.Structure):
    """tok_option"""

    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class TokDiffSide(ctypes.Structure):
    """tok_diff_side"""

    _fields_ = [("module", ctypes.c_void_p), ("options", ctypes.POINTER(TokOption)), ("num_options", ctypes.c_size_t)]


HOST_FN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(TokHostCall), ctypes.c_void_p)
HOLD_FN = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int, ctypes.c_void_p)
LAPACK_FN = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)
REPORT_FN = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)
RULE_FN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
WARN_FN = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p)


class TokRule(ctypes.Structure):
    """tok_rule"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("source", ctypes.c_char_p),
        ("priority", ctypes.c_int64),
        ("always", ctypes.c_int),
        ("tolerance", ctypes.c_double),
        ("nonfinite", ctypes.c_int),
        ("low", ctypes.c_double),
        ("high", ctypes.c_double),
        ("examples", ctypes.POINTER(TokRuleExample)),
        ("num_examples", ctypes.c_size_t),
        ("when", RULE_FN),
        ("trace", RULE_FN),
        ("warn", WARN_FN),
        ("user", ctypes.c_void_p),
    ]


_NUMBERS = ctypes.POINTER(ctypes.c_int64)
_HANDLES = ctypes.POINTER(ctypes.c_void_p)

# name -> (result, arguments). A library without one of them is older than this package; users of the function
# report that when they call it.
_FUNCTIONS = {
    "tok_version": (ctypes.c_char_p, ()),
    "tok_build_info": (ctypes.c_char_p, ()),
    "tok_devices": (ctypes.c_char_p, ()),
    "tok_options": (ctypes.c_char_p, ()),
    "tok_module_read": (ctypes.c_void_p, (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p)),
    "tok_module_explain": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.POINTER(TokOption), ctypes.c_size_t, ctypes.c_void_p)),
    "tok_module_explain_diff": (ctypes.c_void_p, (ctypes.POINTER(TokDiffSide), ctypes.POINTER(TokDiffSide), ctypes.c_void_p)),
    "tok_module_free": (None, (ctypes.c_void_p,)),
    "tok_error_text": (ctypes.c_char_p, (ctypes.c_void_p,)),
    "tok_error_code": (ctypes.c_char_p, (ctypes.c_void_p,)),
    "tok_error_free": (None, (ctypes.c_void_p,)),
    "tok_register_host_call": (ctypes.c_int, (ctypes.c_char_p, HOST_FN, ctypes.c_void_p)),
    "tok_host_call_fail": (None, (ctypes.POINTER(TokHostCall), ctypes.c_char_p)),
    "tok_set_host_hold": (ctypes.c_int, (ctypes.c_char_p, HOLD_FN, ctypes.c_void_p)),
    "tok_set_lapack": (None, (LAPACK_FN,)),
    "tok_stop_host_calls": (None, ()),
    "tok_wait_idle": (ctypes.c_int, (ctypes.c_int64,)),
    "tok_take_lints": (ctypes.c_char_p, ()),
    "tok_set_report": (None, (REPORT_FN, ctypes.c_void_p)),
    "tok_load_plugin": (ctypes.c_void_p, (ctypes.c_char_p,)),
    "tok_plugins": (ctypes.c_char_p, ()),
    "tok_add_fusion_policy": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_void_p)),
    "tok_add_order_policy": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_void_p)),
    "tok_remove_policy": (None, (ctypes.c_uint64,)),
    "tok_policy_fail": (None, (ctypes.c_char_p,)),
    "tok_rule_register": (ctypes.c_void_p, (ctypes.POINTER(TokRule), _HANDLES)),
    "tok_rule_remove": (None, (ctypes.c_void_p,)),
    "tok_rule_restore": (None, (ctypes.c_void_p,)),
    "tok_rules_enter": (None, (_HANDLES, ctypes.c_size_t)),
    "tok_rules_leave": (None, ()),
    "tok_rule_call_fail": (None, (ctypes.c_void_p, ctypes.c_char_p)),
    "tok_rule_call_set": (None, (ctypes.c_void_p, ctypes.POINTER(TokRuleExample))),
    "tok_module_read_file": (ctypes.c_void_p, (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p)),
    "tok_compile": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.POINTER(TokOption), ctypes.c_size_t, ctypes.c_void_p)),
    "tok_executable_free": (None, (ctypes.c_void_p,)),
    "tok_executable_name": (ctypes.c_char_p, (ctypes.c_void_p,)),
    "tok_executable_info": (ctypes.c_char_p, (ctypes.c_void_p,)),
    "tok_executable_num_parameters": (ctypes.c_size_t, (ctypes.c_void_p,)),
    "tok_executable_num_results": (ctypes.c_size_t, (ctypes.c_void_p,)),
    "tok_executable_parameter": (ctypes.POINTER(TokArray), (ctypes.c_void_p, ctypes.c_size_t)),
    "tok_executable_result": (ctypes.POINTER(TokArray), (ctypes.c_void_p, ctypes.c_size_t)),
    "tok_executable_run": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.POINTER(TokArray), ctypes.c_size_t, ctypes.POINTER(TokArray),
                                             ctypes.c_size_t)),  # fmt: skip
    "tok_graph_of": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_void_p)),
    "tok_graph_copy": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_void_p)),
    "tok_graph_free": (None, (ctypes.c_void_p,)),
    "tok_graph_module": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_void_p)),
    "tok_graph_text": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)),
    "tok_graph_json": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_void_p)),
    "tok_graph_attributes": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)),
    "tok_graph_path": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)),
    "tok_graph_match": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
    "tok_graph_add": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.POINTER(TokFragment), ctypes.c_void_p, ctypes.c_void_p)),
    "tok_graph_replace": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_int64, _NUMBERS, ctypes.c_size_t)),
    "tok_graph_replace_uses": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, _NUMBERS, ctypes.c_size_t)),
    "tok_graph_set_operand": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_int64, ctypes.c_size_t, ctypes.c_int64)),
    "tok_graph_remove": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_int64)),
    "tok_graph_outline": (ctypes.c_void_p, (ctypes.c_void_p, _NUMBERS, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p)),
    "tok_graph_inline": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_int64)),
    "tok_graph_pin": (ctypes.c_void_p, (ctypes.c_void_p, _NUMBERS, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_char_p)),
    "tok_graph_plan": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.POINTER(TokOption), ctypes.c_size_t, ctypes.c_void_p)),
    "tok_plan_free": (None, (ctypes.c_void_p,)),
    "tok_plan_json": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_void_p)),
    "tok_plan_decisions": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_void_p)),
    "tok_plan_why": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p)),
    "tok_plan_boundary": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)),
    "tok_plan_explain": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.POINTER(TokOption), ctypes.c_size_t, ctypes.c_void_p)),
    "tok_plan_diff": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)),
    "tok_plan_compile": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_void_p)),
    "tok_register_ffi_target": (ctypes.c_char_p, (ctypes.c_char_p, ctypes.c_void_p)),
}


class LibraryMissing(RuntimeError):
    """libtokamak.so was not found."""


def path_from_env():
    """The library that PJRT_NAMES_AND_LIBRARY_PATHS names for tokamak, or None."""
    for entry in os.environ.get("PJRT_NAMES_AND_LIBRARY_PATHS", "").split(","):
        name, _, path = entry.partition(":")
        if name.strip() != "tokamak" or not path:
            continue
        if path.endswith(".json"):
            return json.loads(pathlib.Path(path).read_text())["library_path"]
        return path
    return None


def path():
    """The path of the library: the one that the environment makes JAX load, the installed one, or that of the source tree."""
    named = path_from_env()
    if named:
        return named
    here = pathlib.Path(__file__).resolve().parent
    paths = [here / NAME, here.parent.parent / "build" / "lib" / NAME]
    for location_path in paths:
        if location_path.is_file():
            return str(location_path)
    looked = " and ".join(str(location_path) for location_path in paths)
    raise LibraryMissing(f"{NAME} is missing at {looked}: install the package, or build it in the clone with scripts/bootstrap")


@functools.cache
def load():
    """The library with its functions declared. Raises LibraryMissing or OSError."""
    library = ctypes.CDLL(path())
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name, None)
        if function is not None:
            function.restype, function.argtypes = result, list(arguments)
    return library


def check(error, kind):
    """Raises an error of the C API as `kind(text)`, and frees it."""
    if error:
        text = load().tok_error_text(error).decode()
        load().tok_error_free(error)
        raise kind(text)


def has(name):
    return getattr(load(), name, None) is not None


def text(name):
    """The text that a function without arguments returns, as str; None if the library lacks the function."""
    if not has(name):
        return None
    said = getattr(load(), name)()
    return None if said is None else said.decode()


def query_json(name, otherwise):
    """The JSON that a function without arguments returns; `otherwise` if the library lacks the function."""
    said = text(name)
    return otherwise if said is None else json.loads(said)
