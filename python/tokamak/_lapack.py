"""Passes SciPy's LAPACK to the library: JAX's CPU backend calls the same one, so that eigenvectors, which are unique
up to a factor, agree with it. JAX requires SciPy, so it is installed; otherwise the library opens the system's LAPACK.
"""

import ctypes
import functools
import logging

from tokamak import _library

logger = logging.getLogger("tokamak")


def pointer_in(capsule):
    """The address in a PyCapsule."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))


@functools.cache
def routines():
    """SciPy's routines by name, as capsules. The first call takes a third of a second."""
    try:
        from scipy.linalg import cython_blas, cython_lapack

        return {**cython_lapack.__pyx_capi__, **cython_blas.__pyx_capi__}
    except Exception as error:
        logger.warning("tokamak: SciPy's LAPACK cannot be used, the machine's is: %r", error)
        return {}


def _find(name):
    # No exception may leave this function: ctypes would print it.
    try:
        return pointer_in(routines()[name.decode()])
    except BaseException:
        return None


_find_pointer = _library.LAPACK_FN(_find)  # ctypes does not keep it alive


def offer():
    """Registers the lookup function. The library calls it when a program first needs LAPACK."""
    if _library.has("tok_set_lapack"):
        _library.load().tok_set_lapack(_find_pointer)
