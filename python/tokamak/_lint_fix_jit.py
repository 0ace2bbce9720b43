"""Donation added to a jit, and what is jitted or computed in each iteration of a loop moved before it."""

import ast

from tokamak import _lint_source
from tokamak._lint_edit import Change, NoFix, qualified_name


def _parameters(function, site):
    """Names of the positional parameters, without a bound self."""
    kind, node = site
    names = [a.arg for a in function.args.posonlyargs + function.args.args]
    is_bound = kind == "call" and isinstance(node.args[0], ast.Attribute) and names[:1] == ["self"]
    return names[1:] if is_bound else names


def donate(path, line, name, arguments):
    """[Change]: donate_argnums for the arguments ("params['w']") at the jit of the function that is defined at a line."""
    source, function = _lint_source.source_of(path), _lint_source.function_at(path, line, name)
    if source is None or function is None:
        raise NoFix("the function's definition was not found")
    sites = _lint_source.jit_sites(path, line, name)
    if len(sites) != 1:
        raise NoFix(f"the function is jitted at {len(sites)} sites" if sites else "its jax.jit was not found in that file")
    kind, node = sites[0]
    names = _parameters(function, sites[0])
    roots = list(dict.fromkeys(argument.split("[")[0].split(".")[0] for argument in arguments))
    numbers = sorted(names.index(root) for root in roots if root in names)
    if not numbers:
        raise NoFix("the arguments are not positional parameters")
    edit = _donating(source, kind, node, numbers)
    listed = ", ".join(names[i] for i in numbers)
    return [Change(f"`{name}` donates {listed}", source, [edit], function=qualified_name(node))]


def _tuple(numbers):
    return f"({', '.join(map(str, numbers))}{',' if len(numbers) == 1 else ''})"


def _donating(source, kind, node, numbers):
    if kind == "decorator":
        at = source.span(node)[1]
        return at, at, f"(donate_argnums={_tuple(numbers)})"
    for keyword in node.keywords:
        if keyword.arg == "donate_argnames" or keyword.arg is None:
            raise NoFix("it already donates by name")
        if keyword.arg == "donate_argnums":
            try:
                given = ast.literal_eval(keyword.value)
            except ValueError:
                raise NoFix("its donate_argnums is computed") from None
            given = {given} if isinstance(given, int) else set(given)
            return (*source.span(keyword.value), _tuple(sorted(given | set(numbers))))
    last = max([*node.args, *node.keywords], key=lambda part: (part.end_lineno, part.end_col_offset), default=None)
    if last is None:
        at = source.span(node)[1] - 1
        return at, at, f"donate_argnums={_tuple(numbers)}"
    at = source.span(last)[1]
    return at, at, f", donate_argnums={_tuple(numbers)}"


# ---- out of a loop


def _free_of_loop(loop, node, but=()):
    """Whether a node reads nothing that the loop assigns or changes."""
    statements = [s for s in loop.body if s not in but]
    bound = _lint_source.assigned_names(statements) | _lint_source.changed_objects(statements)
    if isinstance(loop, ast.For):
        bound |= _lint_source.assigned_names([loop.target])
    own = {a.arg for a in ast.walk(node) if isinstance(a, ast.arg)}
    return not (_lint_source.read_names(node) - own) & bound


def _moved(source, loop, statement, title, function=None):
    begin, end = source.statement_span(statement)
    first = _lint_source.first_line(statement)
    while source.lines[first - 2].lstrip().startswith("#") and first - 1 > loop.lineno:
        first -= 1
    begin = source.line_start(first)
    old, new = source.indent(statement), source.indent(loop)
    lines = source.text[begin:end].splitlines(keepends=True)
    text = "".join(new + line[len(old) :] if line.startswith(old) else line for line in lines)
    at = source.line_start(loop.lineno)
    rest = [s for s in loop.body if s is not statement]
    left = [] if rest else [(end, end, f"{old}pass\n")]
    return Change(title, source, [(at, at, text if text.endswith("\n") else text + "\n"), (begin, end, ""), *left],
                  function=function or qualified_name(statement))  # fmt: skip


def hoist(path, loop_line, line):
    """[Change]: the statement at a line, whose value no iteration changes, before the loop."""
    source = _lint_source.source_of(path)
    loop = source.loop_at(loop_line)
    statement = loop and _lint_source.invariant_statement(source, loop, line)
    if statement is None:
        raise NoFix("the statement reads or assigns something that the loop changes")
    return [_moved(source, loop, statement, f"`{statement.targets[0].id}` is computed once, before the loop")]


def hoist_jit(path, loop_line):
    """[Change]: the jax.jit in a loop before it."""
    source = _lint_source.source_of(path)
    loop = source.loop_at(loop_line)
    if loop is None:
        raise NoFix("the loop was not found")
    for statement in loop.body:
        if isinstance(statement, ast.FunctionDef) and any(_lint_source.is_jit(source, getattr(d, "func", d)) for d in statement.decorator_list):
            if not _free_of_loop(loop, statement, but=(statement,)):
                raise NoFix("the function reads what the loop changes: make that an argument")
            return [_moved(source, loop, statement, f"`{statement.name}` is jitted once, before the loop")]
    calls = [n for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Call) and n.args and _lint_source.is_jit(source, n.func)]
    if not calls:
        raise NoFix("the jax.jit is in a function that the loop calls: make it once, outside")
    if len(calls) > 1:
        raise NoFix("several functions are jitted in the loop")
    return [_hoisted_call(source, loop, calls[0])]


def _hoisted_call(source, loop, call):
    statement = next(s for s in loop.body if s.lineno <= call.lineno <= s.end_lineno)
    is_assigned = isinstance(statement, ast.Assign) and statement.value is call and isinstance(statement.targets[0], ast.Name)
    defined = {s.name: s for s in loop.body if isinstance(s, ast.FunctionDef)}
    if isinstance(call.args[0], ast.Name) and call.args[0].id in defined:
        raise NoFix("the function is defined in the loop: define and jit it before")
    if not _free_of_loop(loop, call, but=(statement,) if is_assigned else ()):
        raise NoFix("the function reads what the loop changes: make that an argument")
    if is_assigned and statement in loop.body:
        return _moved(source, loop, statement, f"`{statement.targets[0].id}` is jitted once, before the loop")
    taken = {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name)}
    name = next(n for n in ("jitted", "jitted2", "jitted3", "jitted_in_loop") if n not in taken)
    at, (begin, end) = source.line_start(loop.lineno), source.span(call)
    text = f"{source.indent(loop)}{name} = {source.segment(call)}\n"
    return Change("the function is jitted once, before the loop", source, [(at, at, text), (begin, end, name)], function=qualified_name(loop))
