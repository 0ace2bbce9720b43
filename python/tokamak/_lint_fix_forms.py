"""Expressions that are rewritten: NumPy numbers that widen arrays, gathers that are slices, products with one-hot arrays."""

import ast

from tokamak import _lint_promotion, _lint_source
from tokamak._lint_edit import Change, NoFix, qualified_name

# Relative tolerance of results that are computed in the narrower type: some hundred of its rounding errors (chosen).
_TOLERANCE = {"float32": 2e-5, "bfloat16": 5e-2, "float16": 5e-3}


def _source(path):
    source = _lint_source.source_of(path)
    if source is None:
        raise NoFix("the source cannot be read")
    return source


def _wide_operands(source, line):
    """Operands at a line that are NumPy numbers or arrays, or names of such."""
    found = []
    for node in source.expressions_at(line):
        for operand in _lint_promotion._operands(source, node) or ():
            is_outer = not any(operand is o or any(operand is p for p in ast.walk(o)) for o in found)
            if _lint_promotion._names_wide_number(source, operand) and is_outer and not _reads_traced(source, operand):
                found.append(operand)
    return found


def _reads_traced(source, operand):
    """Whether an operand calls jax.numpy: then it is an array, not a NumPy number."""
    return any(isinstance(p, ast.Call) and _lint_source.full_name(source, p.func).startswith("jax.") for p in ast.walk(operand))


_UNTYPED = ("array", "asarray", "zeros", "ones", "full", "linspace", "eye", "identity", "logspace")


def _made_untyped(source, node):
    """The call that makes an array without a type: an expression, or the definition of a name; or None."""
    if isinstance(node, ast.Name):
        made = _lint_promotion.definition(source, node.id)
        node = made.value if made is not None else node
    if not isinstance(node, ast.Call) or any(k.arg == "dtype" for k in node.keywords):
        return None
    module, _, name = _lint_source.full_name(source, node.func).rpartition(".")
    return node if module in ("jax.numpy", "numpy") and name in _UNTYPED else None


def _untyped_arrays(source, line):
    """Arrays that are operands at a line and are made without a type: with jax_enable_x64 they are float64."""
    found = []
    for node in source.expressions_at(line):
        for operand in _lint_promotion._operands(source, node) or ():
            call = _made_untyped(source, operand)
            if call is not None and call not in found:
                found.append(call)
    return found


def _typed(source, call, to):
    """A call that makes an array, with the type: np.zeros(3, dtype=np.float32)."""
    prefix, extra = _lint_source.dotted(call.func).rpartition(".")[0], ""
    if not prefix or (to == "bfloat16" and _lint_source.full_name(source, call.func).startswith("numpy.")):
        prefix, extra = _lint_source.name_of(source, "jax.numpy")
    at = source.span(call)[1] - 1
    comma = ", " if call.args or call.keywords else ""
    return Change(f"`{source.segment(call)}` has the type {to}", source, [(at, at, f"{comma}dtype={prefix}.{to}")], [extra] if extra else [],
                  tolerance=_TOLERANCE.get(to, 1e-2), may_narrow=True, function=qualified_name(call))  # fmt: skip


def narrow(path, line, to, operand_text=""):
    """[Change]: the NumPy operand at a line as a Python number, or as an array of the narrower type."""
    source = _source(path)
    operands = _wide_operands(source, line)
    operands = [o for o in operands if source.segment(o) == operand_text] or operands
    arrays = _untyped_arrays(source, line)
    if len(operands) != 1 and not arrays:
        raise NoFix(f"{len(operands)} operands of the line may be the wide one")
    found = [_typed(source, call, to) for call in arrays]
    return found + (_narrowed(source, operands[0], to) if len(operands) == 1 else [])


def _narrowed(source, operand, to):
    """A NumPy number as a Python number, or as an array of the type."""
    if isinstance(operand, ast.Name):
        made = _lint_promotion.definition(source, operand.id)
        if made is None:
            raise NoFix(f"`{operand.id}` is not defined in one place")
        operand = made.value
    text = source.segment(operand)
    title = f"`{text}` no longer widens {to} arrays"
    where = {"tolerance": _TOLERANCE.get(to, 1e-2), "may_narrow": True, "function": qualified_name(operand)}
    numpy, extra = _lint_source.name_of(source, "jax.numpy")
    array = f"{numpy}.asarray({text}, {numpy}.{to})"
    return [Change(title, source, [(*source.span(operand), f"float({text})")], **where),
            Change(title, source, [(*source.span(operand), array)], [extra] if extra else [], **where)]  # fmt: skip


def _call_of(source, node, *names):
    """A call of one of these functions, also behind a name that is assigned once; or None."""
    if isinstance(node, ast.Name):
        made = _lint_promotion.definition(source, node.id)
        node = made.value if made is not None else node
    is_call = isinstance(node, ast.Call) and _lint_source.full_name(source, node.func) in names
    return node if is_call else None


def _bounds(source, call):
    """(start, stop, step) of a call of arange, as text."""
    if any(k.arg != "dtype" for k in call.keywords):
        return None
    words = [source.segment(a) for a in call.args]
    return {1: ("0", *words, "1"), 2: (*words, "1"), 3: tuple(words)}.get(len(words))


def slices(path, line):
    """[Change]: x[jnp.arange(a, b)] as x[a:b], jnp.take(x, jnp.arange(a, b), axis=k) as a slice."""
    source, found = _source(path), []
    for node in source.expressions_at(line):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            call = _call_of(source, node.slice, "jax.numpy.arange", "numpy.arange")
            bounds = call and _bounds(source, call)
            if bounds:
                begin, end, step = bounds
                text = f"{'' if begin == '0' else begin}:{end}{'' if step == '1' else ':' + step}"
                found.append(Change(f"`{source.segment(node)}` is a slice", source, [(*source.span(node.slice), text)],
                                    function=qualified_name(node)))  # fmt: skip
        elif isinstance(node, ast.Call) and _lint_source.full_name(source, node.func) == "jax.numpy.take" and len(node.args) >= 2:
            found += _slice_of_take(source, node)
    if not found:
        raise NoFix("no x[jnp.arange(...)] or jnp.take(x, jnp.arange(...)) is at that line")
    return found


def _slice_of_take(source, node):
    call = _call_of(source, node.args[1], "jax.numpy.arange", "numpy.arange")
    bounds = call and _bounds(source, call)
    axis = next((k.value for k in node.keywords if k.arg == "axis"), node.args[2] if len(node.args) > 2 else None)
    if not bounds or bounds[2] != "1" or axis is None or any(k.arg != "axis" for k in node.keywords):
        return []
    lax, extra = _lint_source.name_of(source, "jax.lax")
    text = f"{lax}.slice_in_dim({source.segment(node.args[0])}, {bounds[0]}, {bounds[1]}, axis={source.segment(axis)})"
    return [Change(f"`{source.segment(node)}` is a slice", source, [(*source.span(node), text)], [extra] if extra else [],
                   function=qualified_name(node))]  # fmt: skip


_PRODUCTS = ("jax.numpy.dot", "jax.numpy.matmul")


def take_rows(path, line):
    """[Change]: jax.nn.one_hot(i, n) @ w as the rows of w."""
    source, found = _source(path), []
    for node in source.expressions_at(line):
        left = right = None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            left, right = node.left, node.right
        elif isinstance(node, ast.Call) and _lint_source.full_name(source, node.func) in _PRODUCTS and len(node.args) == 2:
            left, right = node.args
        call = left is not None and _call_of(source, left, "jax.nn.one_hot")
        if call and call.args:
            numpy, extra = _lint_source.name_of(source, "jax.numpy")
            # An index outside of the range has a row of zeros, as its one-hot row has.
            text = f"{numpy}.take({source.segment(right)}, {source.segment(call.args[0])}, axis=0, mode=\"fill\", fill_value=0)"
            found.append(Change(f"`{source.segment(node)}` takes rows", source, [(*source.span(node), text)], [extra] if extra else [],
                                tolerance=_TOLERANCE["float32"], function=qualified_name(node)))  # fmt: skip
    if not found:
        raise NoFix("no product of jax.nn.one_hot(...) with an array is at that line")
    return found
