"""Tokamak: a fusing tensor compiler.

JAX programs need none of this: with the package installed, `JAX_PLATFORMS=tokamak python program.py` runs them.

    import tokamak
    with tokamak.debug():      # says what each jit inside does
        jax.jit(f)(x)
    print(tokamak.explain(f, x))          # its kernels, what each takes, and for which lines
    with tokamak.require_fused(): ...     # in a function: one kernel, or an error that says why not
    tokamak.options()          # what jax.jit(f, compiler_options={...}) takes
"""

from tokamak import _library
from tokamak._debug import debug
from tokamak._explain import ExplainError, explain
from tokamak._pins import fuse, never_fuse, require_fused

__all__ = ["ExplainError", "build_info", "debug", "devices", "explain", "fuse", "library_path", "never_fuse", "options",
           "require_fused"]  # fmt: skip


def __getattr__(name):
    if name == "__version__":
        return _library.text("tok_version") or "0"
    raise AttributeError(f"module 'tokamak' has no attribute {name!r}")


def library_path():
    """Where libtokamak.so is."""
    return _library.path()


def build_info():
    """How the library was built: a dict with version, backends and the like."""
    return _library.told("tok_build_info", {})


def devices():
    """The devices that the library can serve here, as dicts; none: JAX is not offered the platform."""
    return _library.told("tok_devices", {"devices": []})["devices"]


def options():
    """What `jax.jit(f, compiler_options={...})` takes: a list of dicts with name, type, default and meaning."""
    return _library.told("tok_options", [])
