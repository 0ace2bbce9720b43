"""Scopes that constrain the fusion of the ops traced inside. They are op names that the library parses
(src/fusion/constraints.h); other platforms ignore them. Each is also a decorator, for everything that a function computes."""
import functools


def _scope(kind, label):
    import jax

    if callable(label):
        function, name = label, getattr(label, "__name__", "")

        @functools.wraps(function)
        def pinned(*args, **kwargs):
            with _scope(kind, name if name.isidentifier() else ""):
                return function(*args, **kwargs)

        return pinned
    if not isinstance(label, str):
        raise TypeError(f"tokamak.{kind}: a label is a plain word, or a function to pin, not {type(label).__name__}")
    if any(c in label for c in "/():@="):
        raise ValueError(f"tokamak.{kind}: a label is a plain word, not {label!r}")
    return jax.named_scope(f"tokamak.{kind}:{label}" if label else f"tokamak.{kind}")


def never_fuse(label=""):
    """`with tokamak.never_fuse():` ops inside share no kernel with ops outside."""
    return _scope("never_fuse", label)


def fuse(label=""):
    """`with tokamak.fuse():` ops inside become one kernel if that is possible, whatever the cost model estimates.
    Unconnected parts are handled separately, and so is the backward pass."""
    return _scope("fuse", label)


def require_fused(label=""):
    """Like fuse(), but compilation fails if one kernel is not possible. The error names the rule and the source line."""
    return _scope("require_fused", label)
