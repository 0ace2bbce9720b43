"""lint.promotion and lint.float64: arrays that become wider because one NumPy number, or one array that was made without a type,
is wider. The expression is found by its columns in the source, so that a conversion that the user wrote is not reported."""

import ast
import dataclasses

from tokamak import _lint_jax, _lint_source

_WIDTH = {"bfloat16": 16, "float16": 16, "float32": 32, "float64": 64}
# Functions that promote their operands to a common type; all operators do.
_PROMOTES = frozenset(
    "add subtract multiply divide true_divide power float_power maximum minimum where hypot arctan2 dot matmul vdot inner outer"
    " tensordot einsum logaddexp fmod remainder mod clip heaviside copysign".split()
)


@dataclasses.dataclass
class Promotion:
    """One place where `narrow` becomes `wide`. `operand`: the source of the wider operand, "" if it is not recognized."""

    where: object
    narrow: str
    wide: str
    shape: tuple
    operand: str = ""


def _expression(where):
    """The syntax node that a Where spans, or None."""
    source = _lint_source.source_of(where.file)
    if source is None:
        return None, None
    for node in ast.walk(source.tree):
        at = (getattr(node, "lineno", 0), getattr(node, "col_offset", -1), getattr(node, "end_lineno", 0))
        if at == (where.line, where.column, where.end_line) and node.end_col_offset == where.end_column:
            if isinstance(node, ast.expr):
                return source, node
    return source, None


def _operands(source, node):
    """The operands of an expression that promotes types, or None."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.AugAssign):
        return [node.value]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Call):
        name = _lint_source.full_name(source, node.func)
        if name.startswith(("jax.numpy.", "jax.lax.")) and name.rpartition(".")[2] in _PROMOTES:
            return list(node.args)
    return None


def _is_constant(atom, constants):
    return _lint_jax.is_literal(atom) or atom in constants


def found(jaxpr):
    """The Promotions of a jaxpr and of its inner ones."""
    results = {}
    _search(jaxpr, results)
    return list(results.values())


def _search(jaxpr, results):
    constants, users = set(jaxpr.constvars), {}
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in ("broadcast_in_dim", "reshape", "iota", "convert_element_type") and all(
            _is_constant(a, constants) for a in eqn.invars
        ):
            constants.update(eqn.outvars)
        for atom in eqn.invars:
            if not _lint_jax.is_literal(atom):
                users.setdefault(atom, []).append(eqn)
        for inner in _lint_jax.inner_jaxprs(eqn):
            _search(inner, results)
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "convert_element_type" and not _lint_jax.is_literal(eqn.invars[0]):
            _look_at(eqn, jaxpr, constants, users, results)


def _look_at(eqn, jaxpr, constants, users, results):
    narrow, wide = str(eqn.invars[0].aval.dtype), str(eqn.params["new_dtype"])
    out = eqn.outvars[0]
    if not (_WIDTH.get(narrow, 99) < _WIDTH.get(wide, 0)) or eqn.invars[0] in constants or eqn.params.get("weak_type"):
        return
    where = _lint_jax.where(eqn)
    if where is None or not _lint_jax.is_users(where.file):
        return
    wider = [a for user in users.get(out, ()) for a in user.invars if a is not out and str(getattr(a.aval, "dtype", "")) == wide]
    if not wider or not all(_is_constant(a, constants) for a in wider):
        return  # two arrays of different types, or no other operand: it is meant
    source, node = _expression(where)
    operands = _operands(source, node) if node is not None else None
    if operands is None and not isinstance(node, ast.AugAssign):
        if node is not None:
            return  # the user wrote a conversion, or called a function that converts
    named = [o for o in operands or () if _names_wide_number(source, o)]
    operand = source.segment(named[0]) if named else ""
    shape = tuple(out.aval.shape)
    key = (where.file, where.line, where.column, narrow, wide)
    results.setdefault(key, Promotion(where, narrow, wide, shape, operand))


def _is_numpy(source, node):
    """Whether an expression calls NumPy or reads a name of it: np.sqrt(d), np.float64(2), np.array(...)."""
    for part in ast.walk(node):
        if isinstance(part, (ast.Call, ast.Attribute)):
            name = _lint_source.full_name(source, part.func if isinstance(part, ast.Call) else part)
            if name.startswith("numpy."):
                return True
    return False


def definition(source, name):
    """The one assignment `name = ...` of the file, or None if there are several."""
    found = [n for n in ast.walk(source.tree) if isinstance(n, ast.Assign) and [*map(_lint_source.dotted, n.targets)] == [name]]
    return found[0] if len(found) == 1 else None


def _names_wide_number(source, node):
    """Whether an operand is a NumPy number or array, by its spelling or by that of its definition."""
    if _is_numpy(source, node):
        return True
    if isinstance(node, ast.Subscript):  # an element of a NumPy array
        node = node.value
    made = definition(source, node.id) if isinstance(node, ast.Name) else None
    return made is not None and _is_numpy(source, made.value)
