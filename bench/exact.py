"""The result of a function if every real number in it had 64 bits: decides which of two compilers is more accurate."""


def evaluate(fn, arguments):
    """The leaves of fn(*arguments) in f64, or None if it has control flow or an unsupported op."""
    import jax
    import numpy as np

    closed = jax.make_jaxpr(fn)(*arguments)
    with jax.enable_x64(True):
        try:
            results = _walk(closed.jaxpr, [_wide(c) for c in closed.consts], [_wide(a) for a in jax.tree.leaves(arguments)])
            return [np.asarray(r) for r in results]
        except (NotImplementedError, TypeError, ValueError):
            return None


def distance(values, exact):
    """The root mean square of the errors relative to that of the numbers; of the worst array."""
    import jax
    import numpy as np

    worst = 0.0
    for value, right in zip(jax.tree.leaves(values), exact, strict=True):
        value, right = np.asarray(value).astype(np.float64), right.astype(np.float64)
        size = np.sqrt(np.mean(np.square(right)))
        worst = max(worst, float(np.sqrt(np.mean(np.square(value - right))) / size) if size else 0.0)
    return worst


def _wide(value):
    import jax.numpy as jnp

    return jnp.asarray(value, _wide_type(jnp.asarray(value).dtype))


def _wide_type(dtype):
    import jax.numpy as jnp

    return jnp.float64 if jnp.issubdtype(dtype, jnp.floating) else dtype


def _walk(jaxpr, consts, arguments):
    from jax.extend.core import Literal

    values = dict(zip(jaxpr.constvars, consts, strict=True)) | dict(zip(jaxpr.invars, arguments, strict=True))
    read = lambda v: _wide(v.val) if isinstance(v, Literal) else values[v]  # noqa: E731
    for equation in jaxpr.eqns:
        results = _apply(equation, [read(v) for v in equation.invars])
        values.update(zip(equation.outvars, results, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _apply(equation, operands):
    params = dict(equation.params)
    inner = params.get("jaxpr") or params.get("call_jaxpr") or params.get("fun_jaxpr")
    if equation.primitive.name in ("scan", "while", "cond"):
        raise NotImplementedError(equation.primitive.name)
    if inner is not None:
        jaxpr, consts = (inner.jaxpr, inner.consts) if hasattr(inner, "jaxpr") else (inner, [])
        return _walk(jaxpr, [_wide(c) for c in consts], operands)
    for name in ("new_dtype", "preferred_element_type", "dtype", "accum_dtype"):
        if params.get(name) is not None:
            params[name] = _wide_type(params[name])
    results = equation.primitive.bind(*operands, **params)
    return results if equation.primitive.multiple_results else [results]
