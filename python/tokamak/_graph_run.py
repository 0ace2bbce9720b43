"""Traces functions for graphs, and runs compiled graphs on arrays through the C API."""

import contextlib

from tokamak import _library
from tokamak._graph_objects import GraphError, check, dtype_of


def _hide_this_file():
    """Instructions that belong to no line of a function get the line of its caller: the user's, not one of this file."""
    from jax.extend import source_info_util

    source_info_util.register_exclusion(__file__)


def _text_of(lowered):
    return lowered.as_text(debug_info=True).encode()


def traced(function, operands):
    """StableHLO of a JAX function of arrays. `operands`: (dims, dtype, type as text) of each."""
    import jax

    _hide_this_file()
    wide = False
    arrays = []
    for shape, dtype, text in operands:
        if text.startswith("("):
            raise GraphError(f"a function of instructions takes arrays, not {text}")
        wide = wide or dtype.itemsize >= 8 and dtype.name != "complex64"
        arrays.append(jax.ShapeDtypeStruct(shape, dtype))
    with jax.enable_x64(True) if wide else contextlib.nullcontext():
        return _text_of(jax.jit(function, keep_unused=True).lower(*arrays))


def _kept_arguments(lowered, count):
    """The numbers of the flat arguments that the program has as parameters: jax.jit drops unused ones."""
    compile_args = getattr(getattr(lowered, "_lowering", None), "compile_args", {})
    kept = compile_args.get("kept_var_idx")
    return range(count) if kept is None else sorted(kept)


class Signature:
    """The structure of a function's arguments and results; that of files is flat."""

    def __init__(self, in_tree=None, out_tree=None, kept=None):
        self.in_tree, self.out_tree, self.kept = in_tree, out_tree, kept

    @staticmethod
    def of(f, args, kwargs):
        """(StableHLO, signature) of a function."""
        import jax

        _hide_this_file()
        lowered = (f if hasattr(f, "lower") else jax.jit(f, keep_unused=True)).lower(*args, **kwargs)
        in_tree = lowered.in_tree
        return _text_of(lowered), Signature(in_tree, lowered.out_tree, _kept_arguments(lowered, in_tree.num_leaves))

    def flat(self, args, kwargs):
        if self.in_tree is None:
            if kwargs:
                raise TypeError("the program of a file takes arguments by position")
            return list(args)
        import jax

        leaves, tree = jax.tree.flatten((args, kwargs))
        if tree != self.in_tree:
            raise TypeError(f"the graph was made for arguments of the structure {self.in_tree}, got {tree}")
        return [leaves[i] for i in self.kept]

    def shaped(self, results):
        if self.out_tree is None:
            return results[0] if len(results) == 1 else tuple(results)
        import jax

        return jax.tree.unflatten(self.out_tree, results)


def _array(value, spec, number):
    """The argument as a NumPy array of the program's type."""
    import numpy as np

    dtype, dims = dtype_of(spec.type.decode()), tuple(spec.dims[: spec.rank])
    if "key<" in str(getattr(value, "dtype", "")):
        import jax

        value = jax.random.key_data(value)
    given = np.asarray(value)
    if given.dtype != dtype and (hasattr(value, "dtype") or not np.can_cast(given.dtype, dtype, "same_kind")):
        raise TypeError(f"argument {number} is {given.dtype}{list(given.shape)}, the program takes {dtype}{list(dims)}")
    if given.shape != dims:
        raise TypeError(f"argument {number} is {given.dtype}{list(given.shape)}, the program takes {dtype}{list(dims)}")
    return np.ascontiguousarray(given, dtype).reshape(dims)


def _in_c(array, spec):
    return _library.TokArray(array.ctypes.data, array.nbytes, spec.type, spec.rank, spec.dims)


class Compiled:
    """A compiled program. Call it with arrays in the structure of the function's arguments; results are NumPy arrays."""

    def __init__(self, handle, signature):
        self._handle, self._signature = handle, signature
        library, pointer = _library.load(), handle.pointer
        self._parameters = [library.tok_executable_parameter(pointer, i)[0] for i in range(library.tok_executable_num_parameters(pointer))]
        self._results = [library.tok_executable_result(pointer, i)[0] for i in range(library.tok_executable_num_results(pointer))]
        self.name = library.tok_executable_name(pointer).decode()

    @property
    def info(self):
        """{"kernels": 3, "host_steps": [...], "temporary_bytes": 64}."""
        import json

        return json.loads(_library.load().tok_executable_info(self._handle.pointer))

    def __call__(self, *args, **kwargs):
        import numpy as np

        flat = self._signature.flat(args, kwargs)
        if len(flat) != len(self._parameters):
            raise TypeError(f"the program takes {len(self._parameters)} arrays, got {len(flat)}")
        inputs = [_array(value, spec, i) for i, (value, spec) in enumerate(zip(flat, self._parameters, strict=True))]
        results = [np.empty(tuple(spec.dims[: spec.rank]), dtype_of(spec.type.decode())) for spec in self._results]
        given = (_library.TokArray * len(inputs))(*map(_in_c, inputs, self._parameters))
        filled = (_library.TokArray * len(results))(*map(_in_c, results, self._results))
        check(_library.load().tok_executable_run(self._handle.pointer, given, len(inputs), filled, len(results)))
        return self._signature.shaped(results)

    def __repr__(self):
        return f"<compiled {self.name}: {len(self._parameters)} parameters, {len(self._results)} results>"
