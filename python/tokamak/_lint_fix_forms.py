"""Expressions that are rewritten: NumPy numbers that widen arrays, gathers that are slices, products with one-hot arrays."""

import ast

from tokamak import _lint_promotion, _lint_source
from tokamak._lint_edit import Change, NoFix, qualified_name

# Relative tolerance of results that are computed in the narrower type: some hundred of its rounding errors (chosen).
_TOLERANCE = {"float32": 2e-5, "bfloat16": 5e-2, "float16": 5e-3}
_SCALARS = {"float64", "float32", "float16", "sqrt", "log", "exp", "pi", "prod", "power", "square", "float_"}


def _source(path):
    source = _lint_source.source_of(path)
    if source is None:
        raise NoFix("the source cannot be read")
    return source


def _wide_operands(source, line):
    """Operands at a line that are NumPy numbers or arrays, or names of such."""
    found = []
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.expr) or not node.lineno <= line <= node.end_lineno:
            continue
        for operand in _lint_promotion._operands(source, node) or ():
            is_outer = not any(operand is o or any(operand is p for p in ast.walk(o)) for o in found)
            if _lint_promotion._names_wide_number(source, operand) and is_outer and not _reads_traced(source, operand):
                found.append(operand)
    return found


def _reads_traced(source, operand):
    """Whether an operand calls jax.numpy: then it is an array, not a NumPy number."""
    return any(isinstance(p, ast.Call) and _lint_source.full_name(source, p.func).startswith("jax.") for p in ast.walk(operand))


def narrow(path, line, to, operand_text=""):
    """[Change]: the NumPy operand at a line as a Python number, or as an array of the narrower type."""
    source = _source(path)
    operands = _wide_operands(source, line)
    operands = [o for o in operands if source.segment(o) == operand_text] or operands
    if len(operands) != 1:
        raise NoFix(f"{len(operands)} operands of the line may be the wide one")
    operand = operands[0]
    if isinstance(operand, ast.Name):
        made = _lint_promotion.definition(source, operand.id)
        if made is None:
            raise NoFix(f"`{operand.id}` is not defined in one place")
        operand = made.value
    text, found = source.segment(operand), []
    title = f"`{text}` no longer widens {to} arrays"
    where = {"tolerance": _TOLERANCE.get(to, 1e-2), "may_narrow": True, "function": qualified_name(operand)}
    found.append(Change(title, source, [(*source.span(operand), f"float({text})")], **where))
    if isinstance(operand, ast.Call) and not any(k.arg == "dtype" for k in operand.keywords):
        numpy, extra = _lint_source.name_of(source, "jax.numpy")
        array = f"{numpy}.asarray({text}, {numpy}.{to})"
        found.append(Change(title, source, [(*source.span(operand), array)], [extra] if extra else [], **where))
    return found


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
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.expr) or not node.lineno <= line <= node.end_lineno:
            continue
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
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.expr) or not node.lineno <= line <= node.end_lineno:
            continue
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
