"""Values of a run, to be compared with those of a patched run: globals of the script, and results and locals of functions."""

import os
import sys


def _arrays(value):
    """The arrays and numbers of a value: a list of NumPy arrays, or None if it holds something else."""
    import numpy as np

    if isinstance(value, type(sys)) or isinstance(value, type) or callable(value) and not hasattr(value, "dtype"):
        return None
    import jax

    from tokamak import _lint_jax

    found = []
    for leaf in jax.tree.leaves(value):
        if isinstance(leaf, (str, bytes)) or leaf is None:
            continue
        if not _lint_jax.is_concrete(leaf):
            return None
        if isinstance(leaf, (bool, int, float, complex, np.ndarray, np.generic)) or hasattr(leaf, "dtype"):
            try:
                leaf = _lint_jax.base_array(leaf)
                array = np.asarray(leaf.addressable_data(0) if hasattr(leaf, "addressable_data") else leaf)
            except Exception:
                return None  # deleted, or spread over processes
            if array.dtype == object:
                return None
            found.append(array.astype(np.float32) if array.dtype.kind == "V" or str(array.dtype) == "bfloat16" else array)
        else:
            return None
    return found


class Watch:
    """Notes the locals of functions when they return: [(file, line of the def)]."""

    def __init__(self, functions):
        self.wanted, self.locals = {tuple(f) for f in functions}, {}
        self.names = {name for _, name in self.wanted}

    def __enter__(self):
        if self.wanted:
            sys.setprofile(self._profile)
        return self

    def __exit__(self, *_):
        if self.wanted:
            sys.setprofile(None)

    def _profile(self, frame, event, result):
        if event != "return":
            return
        code = frame.f_code
        if code.co_qualname not in self.names or (os.path.realpath(code.co_filename), code.co_qualname) not in self.wanted:
            return
        sys.setprofile(None)
        try:
            values = {**frame.f_locals, "return": result}
            for name, value in values.items():
                arrays = _arrays(value)
                if arrays:
                    self.locals[f"{code.co_qualname}.{name}"] = arrays
        finally:
            sys.setprofile(self._profile)


def save(path, variables, watch):
    """Writes the values to an .npz file."""
    import numpy as np

    values = {name: _arrays(value) for name, value in variables.items() if not name.startswith("__")}
    values = {name: arrays for name, arrays in values.items() if arrays} | watch.locals
    np.savez(path, **{f"{name}|{i}": array for name, arrays in values.items() for i, array in enumerate(arrays)})


def _by_name(file):
    names = {}
    for key in file.files:
        names.setdefault(key.rpartition("|")[0], []).append(file[key])
    return names


def _paired(old, new):
    """The arrays of one name, in pairs. A list of numbers and an array of them hold the same."""
    if [x.shape for x in old] == [y.shape for y in new]:
        return list(zip(old, new))
    if len({x.dtype for x in old}) == len({y.dtype for y in new}) == 1 and sum(x.size for x in old) == sum(y.size for y in new):
        import numpy as np

        return [(np.concatenate([x.ravel() for x in old]), np.concatenate([y.ravel() for y in new]))]
    return None


def _difference(x, y):
    """The largest difference, relative to the largest element; None if other elements are infinite or NaN."""
    import numpy as np

    x, y = np.asarray(x, np.complex128), np.asarray(y, np.complex128)
    finite = np.isfinite(x)
    if not np.array_equal(finite, np.isfinite(y)):
        return None
    scale = max(1e-30, float(np.max(np.abs(x[finite]), initial=0)))
    return float(np.max(np.abs(x - y)[finite], initial=0)) / scale


def compared(before, after, allowed_missing=(), tolerance=0.0, may_narrow=False):
    """Compares two files of `save`: (whether they agree, what was compared or differs, largest relative difference)."""
    import numpy as np

    old, new = _by_name(np.load(before)), _by_name(np.load(after))
    worst, count = 0.0, 0
    for name in old:
        if name.rpartition(".")[2] in allowed_missing:
            continue
        if name not in new:
            return False, f"{name} is missing", worst
        pairs = _paired(old[name], new[name])
        if pairs is None:
            return False, f"{name} has other shapes", worst
        for x, y in pairs:
            if x.dtype != y.dtype and not (may_narrow and x.dtype.kind == y.dtype.kind == "f"):
                return False, f"{name} has type {y.dtype}, not {x.dtype}", worst
            count += 1
            if np.array_equal(x, y, equal_nan=x.dtype.kind in "fc"):
                continue
            difference = _difference(x, y) if x.dtype.kind in "fc" and tolerance else None
            if difference is None:
                return False, f"{name} differs", worst
            worst = max(worst, difference)
            if worst > tolerance:
                return False, f"{name} differs by {worst:.2g} of its largest element", worst
    return True, f"{count} arrays", worst
