"""Finds things in the user's Python source by its syntax tree: the loop around a line, the statement of an expression, the
place where a function is jitted."""

import ast
import functools
import os
import pathlib

LOOPS = (ast.For, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)

overlay = {}  # path -> text that stands for the file (a patched copy)


class Source:
    """A parsed file. Every node has `parent`."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        self.lines = text.splitlines(keepends=True)
        self.tree = ast.parse(text, filename=str(path))
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                child.parent = node
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line))

    def offset(self, line, column):
        """The index in `text` of a line and of a column in UTF-8 bytes, as ast counts them."""
        text = self.lines[line - 1]
        return self._starts[line - 1] + len(text.encode()[:column].decode(errors="ignore"))

    def span(self, node):
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def segment(self, node):
        begin, end = self.span(node)
        return self.text[begin:end]

    def line_start(self, line):
        return self._starts[line - 1]

    def statement_span(self, node):
        """Whole lines of a statement, its decorators too."""
        return self._starts[first_line(node) - 1], self._starts[min(node.end_lineno, len(self.lines))]

    def indent(self, node):
        text = self.lines[node.lineno - 1]
        return text[: len(text) - len(text.lstrip())]

    def nodes_at(self, line, kinds):
        """Nodes of these kinds that the line is in, the innermost first."""
        found = [n for n in ast.walk(self.tree) if isinstance(n, kinds) and hasattr(n, "lineno") and n.lineno <= line <= n.end_lineno]
        return sorted(found, key=lambda n: (n.end_lineno - n.lineno, -n.lineno))

    def expressions_at(self, line):
        """All expressions that the line is in."""
        return (n for n in ast.walk(self.tree) if isinstance(n, ast.expr) and n.lineno <= line <= n.end_lineno)

    def loop_at(self, line):
        """The loop whose header begins at the line, or None."""
        return next((n for n in ast.walk(self.tree) if isinstance(n, LOOPS) and n.lineno == line), None)

    @functools.cached_property
    def imports(self):
        """{name in the file: full name} of what the module imports, anywhere."""
        found = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    found[alias.asname or alias.name.split(".")[0]] = alias.name if alias.asname else alias.name.split(".")[0]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        return found


@functools.lru_cache(64)
def _parsed(path, text):
    try:
        return Source(path, text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def source_of(path):
    """The Source of a Python file, or None."""
    text = overlay.get(os.path.realpath(path)) if overlay else None
    if text is None:
        try:
            text = pathlib.Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None
    return _parsed(str(path), text)


def first_line(node):
    """The line of a statement, or of the first of its decorators."""
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])


def parents(node):
    while (node := getattr(node, "parent", None)) is not None:
        yield node


def loop_around(path, line):
    """The innermost loop that contains a line in its body, within the same function; or None."""
    source = source_of(path)
    if source is None:
        return None
    for node in source.nodes_at(line, LOOPS + COMPREHENSIONS + SCOPES):
        if isinstance(node, SCOPES):
            if isinstance(node, ast.Lambda):
                continue
            return None
        if isinstance(node, LOOPS) and not any(s.lineno <= line <= s.end_lineno for s in node.body + node.orelse):
            continue  # the line is the loop's header
        return node
    return None


def enclosing_function(node):
    """The function (or module) whose code contains a node."""
    return next(p for p in parents(node) if isinstance(p, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)))


def function_at(path, line, name=None):
    """The function whose definition, with its decorators, begins at a line: a FunctionDef or Lambda, or None."""
    source = source_of(path)
    if source is None:
        return None
    for node in ast.walk(source.tree):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            if line in (first_line(node), node.lineno) and (name in (None, "<lambda>") or getattr(node, "name", "<lambda>") == name):
                return node
    return None


def dotted(node):
    """"jax.jit" of the expression jax.jit, else ""."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        prefix = dotted(node.value)
        return f"{prefix}.{node.attr}" if prefix else ""
    return ""


def full_name(source, node):
    """"jax.numpy.arange" of jnp.arange, by the imports of the file."""
    name = dotted(node)
    first, _, rest = name.partition(".")
    known = source.imports.get(first, first)
    return f"{known}.{rest}" if rest else known


def name_of(source, wanted):
    """How the file can write a full name such as "jax.lax": ("lax", "") or ("jax.lax", ""), or with the import it lacks."""
    known = source.imports
    for alias, full in known.items():
        if full == wanted:
            return alias, ""
    first, _, rest = wanted.partition(".")
    for alias, full in known.items():
        if full == first and rest:
            return f"{alias}.{rest}", ""
    return wanted, f"import {first}\n"


def import_offset(source):
    """Where an import line can be added: after the last import among the first statements of the file."""
    end = 0
    for i, node in enumerate(source.tree.body):
        is_docstring = i == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, (ast.Import, ast.ImportFrom)) or is_docstring:
            end = node.end_lineno
        else:
            break
    return source.line_start(end + 1) if end < len(source.lines) else len(source.text)


def is_jit(source, node):
    return full_name(source, node) in ("jax.jit", "jax.api.jit", "jax.experimental.pjit.pjit")


def jit_sites(path, line, name):
    """Where the function that is defined at a line is jitted: decorators and calls. A list of (kind, node) with kind
    "decorator" (@jax.jit), "decorator call" (@jax.jit(...), @partial(jax.jit, ...)) or "call" (jax.jit(f, ...))."""
    source, function = source_of(path), function_at(path, line, name)
    if source is None or function is None:
        return []
    found = []
    for decorator in getattr(function, "decorator_list", ()):
        if is_jit(source, decorator):
            found.append(("decorator", decorator))
        elif isinstance(decorator, ast.Call):
            is_partial = full_name(source, decorator.func) == "functools.partial" and decorator.args
            if is_jit(source, decorator.func) or (is_partial and is_jit(source, decorator.args[0])):
                found.append(("decorator call", decorator))
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and node.args and is_jit(source, node.func):
            given = node.args[0]
            same = given is function or (isinstance(given, (ast.Name, ast.Attribute)) and dotted(given).split(".")[-1] == name)
            if same:
                found.append(("call", node))
    return found


def assigned_names(nodes):
    """Names that statements bind, in any way."""
    found = set()
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, (ast.Store, ast.Del)):
                found.add(part.id)
            elif isinstance(part, (ast.FunctionDef, ast.ClassDef)):
                found.add(part.name)
            elif isinstance(part, (ast.Import, ast.ImportFrom)):
                found.update(alias.asname or alias.name.split(".")[0] for alias in part.names)
            elif isinstance(part, ast.ExceptHandler) and part.name:
                found.add(part.name)
    return found


def read_names(node):
    """Names that an expression or statement reads."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}


def changed_objects(nodes):
    """Names of objects whose attributes, elements or methods statements may change: x.a = 1, x[0] = 1, x.append(1)."""
    found = set()
    for node in nodes:
        for part in ast.walk(node):
            target = None
            if isinstance(part, (ast.Attribute, ast.Subscript)) and isinstance(part.ctx, (ast.Store, ast.Del)):
                target = part.value
            elif isinstance(part, ast.Expr) and isinstance(part.value, ast.Call) and isinstance(part.value.func, ast.Attribute):
                target = part.value.func.value
            if target is not None:
                found.add(dotted(target).split(".")[0])
    return found


def invariant_statement(source, loop, line):
    """The statement at a line, directly in a loop's body, that assigns one name a value that no iteration changes; or None."""
    if not isinstance(loop, LOOPS):
        return None
    statement = next((s for s in loop.body if s.lineno <= line <= s.end_lineno), None)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not isinstance(statement.targets[0], ast.Name):
        return None
    name, others = statement.targets[0].id, [s for s in loop.body if s is not statement]
    bound = assigned_names([*others, loop.target] if isinstance(loop, ast.For) else others)
    reads = read_names(statement.value)
    if name in bound or name in reads or reads & (bound | changed_objects(loop.body)):
        return None
    before = loop.body[: loop.body.index(statement)]
    if any(name in read_names(s) for s in before) or (isinstance(loop, ast.While) and name in read_names(loop.test)):
        return None  # an earlier value is read first
    return statement
