"""Hands the library SciPy's LAPACK: the one that JAX's CPU backend calls, so that eigenvectors, which are determined
up to a factor, come out as there. JAX needs SciPy, so it is always there; without it the library opens the machine's.
"""

import ctypes
import functools
import logging

from tokamak import _library

logger = logging.getLogger("tokamak")


def pointer_in(capsule):
    """The address that a PyCapsule holds."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))


@functools.cache
def routines():
    """SciPy's routines by name, as capsules. Takes a third of a second the first time."""
    try:
        from scipy.linalg import cython_blas, cython_lapack

        return {**cython_lapack.__pyx_capi__, **cython_blas.__pyx_capi__}
    except Exception as error:
        logger.warning("tokamak: SciPy's LAPACK cannot be used, the machine's is: %r", error)
        return {}


def _find(name):
    # Nothing may leave this function: ctypes would print it.
    try:
        return pointer_in(routines()[name.decode()])
    except BaseException:
        return None


_find_pointer = _library.LAPACK_FN(_find)  # ctypes does not keep it alive for us


def offer():
    """Tells the library where to ask. Once a program needs LAPACK, it does."""
    if _library.has("tok_set_lapack"):
        _library.load().tok_set_lapack(_find_pointer)
