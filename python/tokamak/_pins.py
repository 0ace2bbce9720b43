"""Scopes that pin what fusion does with what is traced inside. They are names, which the library reads
(src/fusion/pins.h); on other platforms they do nothing. Each is also a decorator, of all that a function computes."""
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
    """`with tokamak.never_fuse():` what is computed inside shares no kernel with anything outside."""
    return _scope("never_fuse", label)


def fuse(label=""):
    """`with tokamak.fuse():` what is computed inside is one kernel, if there can be one, whatever prices say. What does
    not hang together is judged apart, and so is the backward part."""
    return _scope("fuse", label)


def require_fused(label=""):
    """As fuse(); compiling fails, and says which rule refuses and for which line, when there can be none."""
    return _scope("require_fused", label)
