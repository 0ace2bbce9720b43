"""A Python loop over a range, a list or an array of a set of carried values, as jax.lax.fori_loop or jax.lax.scan.

The body becomes a function with its text unchanged. A name is carried if an iteration reads the value of the one before,
or if its value is read after the loop. A list that the body appends to becomes the stacked results of a scan."""

import ast
import dataclasses

from tokamak import _lint_source
from tokamak._lint_edit import Change, NoFix, qualified_name

_TOLERANCE = 1e-5  # relative: the same operations in the same order, but fused otherwise (chosen: 84 units of f32)
_FORBIDDEN = {
    ast.Return: "returns from", ast.Break: "breaks out of", ast.Continue: "continues", ast.Yield: "yields in", ast.YieldFrom: "yields in",
    ast.Await: "awaits in", ast.Global: "declares a global in", ast.Nonlocal: "declares a nonlocal in", ast.Try: "catches exceptions in",
    ast.Raise: "raises in", ast.Delete: "deletes in", ast.While: "has a while loop in", ast.Import: "imports in", ast.ImportFrom: "imports in",
    ast.Assert: "asserts in", ast.With: "has a with statement in",
}  # fmt: skip


@dataclasses.dataclass
class _Append:
    statement: ast.Expr
    name: str  # of the list
    value: ast.expr
    is_number: bool = False  # float(value) was appended


def _sequence_names(target):
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for item in target.elts for name in _sequence_names(item)]
    raise NoFix("the loop assigns to an attribute or an element")


def _append_of(statement):
    call = statement.value if isinstance(statement, ast.Expr) else None
    is_append = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "append"
    if not is_append or not isinstance(call.func.value, ast.Name) or len(call.args) != 1 or call.keywords:
        return None
    value, is_number = call.args[0], False
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "float" and len(value.args) == 1:
        value, is_number = value.args[0], True
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "item" and not value.args:
        value, is_number = value.func.value, True
    return _Append(statement, call.func.value.id, value, is_number)


class _Flow(ast.NodeVisitor):
    """Names that a body reads before it assigns them, in the order of evaluation."""

    def __init__(self):
        self.bound, self.early = set(), set()

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load):
            if node.id not in self.bound:
                self.early.add(node.id)
        else:
            self.bound.add(node.id)

    def visit_Assign(self, node):
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AnnAssign(self, node):
        if node.value:
            self.visit(node.value)
            self.visit(node.target)

    def visit_AugAssign(self, node):
        self.visit(node.value)
        if isinstance(node.target, ast.Name) and node.target.id not in self.bound:
            self.early.add(node.target.id)
        self.visit(node.target)

    def visit_For(self, node):
        self.visit(node.iter)
        self.visit(node.target)
        before = set(self.bound)  # the body may not run
        for statement in node.body + node.orelse:
            self.visit(statement)
        self.bound = before

    def visit_If(self, node):
        self.visit(node.test)
        before = set(self.bound)
        both = []
        for arm in (node.body, node.orelse):
            self.bound = set(before)
            for statement in arm:
                self.visit(statement)
            both.append(self.bound)
        self.bound = both[0] & both[1]

    def _comprehension(self, node):
        for generator in node.generators:
            self.visit(generator.iter)
        outer = set(self.bound)
        for generator in node.generators:
            self.visit(generator.target)
        for part in ast.iter_child_nodes(node):
            if not isinstance(part, ast.comprehension):
                self.visit(part)
        self.bound = outer

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension

    def visit_Lambda(self, node):
        own = {arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)}
        self.early |= _lint_source.read_names(node.body) - own - self.bound

    def visit_FunctionDef(self, node):
        own = {arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)} | _lint_source.assigned_names(node.body)
        reads = set().union(*map(_lint_source.read_names, node.body), *map(_lint_source.read_names, node.decorator_list))
        self.early |= reads - own - self.bound
        self.bound.add(node.name)


class LoopWriter:
    """Rewrites one loop. Raises NoFix."""

    def __init__(self, source, loop):
        self.source, self.loop = source, loop
        if not isinstance(loop, ast.For):
            raise NoFix("the loop is not `for ... in ...`")
        if loop.orelse:
            raise NoFix("the loop has an else")
        self.scope = _lint_source.enclosing_function(loop)
        self.appends = [a for a in map(_append_of, loop.body) if a]
        self.body = [s for s in loop.body if not _append_of(s)]
        self._check_body()
        self.targets = _sequence_names(loop.target)
        self._find_carried()

    def _check_body(self):
        for statement in self.body:
            if isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Constant):
                what = self.source.segment(statement.value).split("\n")[0]
                raise NoFix(f"`{what}` in the loop is called for its effect")
            for part in ast.walk(statement):
                if type(part) in _FORBIDDEN and not self._is_inner(part, statement):
                    raise NoFix(f"the program {_FORBIDDEN[type(part)]} the loop (line {part.lineno})")
                if isinstance(part, (ast.Attribute, ast.Subscript)) and isinstance(part.ctx, (ast.Store, ast.Del)):
                    raise NoFix(f"the loop changes an object in place (line {part.lineno})")
                is_effect = isinstance(part, ast.Expr) and isinstance(part.value, ast.Call)
                if is_effect and part is not statement and not self._is_inner(part, statement):
                    raise NoFix(f"a call at line {part.lineno} is made for its effect")

    @staticmethod
    def _is_inner(part, statement):
        """Whether a node belongs to a function that the statement defines."""
        for parent in _lint_source.parents(part):
            if isinstance(parent, (ast.FunctionDef, ast.Lambda)):
                return True
            if parent is statement:
                return isinstance(statement, ast.FunctionDef)
        return False

    def _find_carried(self):
        flow = _Flow()
        flow.bound = set(self.targets)
        for statement in self.loop.body:
            append = _append_of(statement)
            flow.visit(append.value if append else statement)
        bound = _lint_source.assigned_names(self.body)
        if set(self.targets) & bound:
            raise NoFix("the loop changes its own variable")
        self.lists = [append.name for append in self.appends]
        if len(set(self.lists)) != len(self.lists) or set(self.lists) & (flow.early | bound):
            raise NoFix("the loop reads a list that it appends to")
        before, after = self._bound_before(), self._read_after()
        if used := set(self.targets) & after:
            raise NoFix(f"`{sorted(used)[0]}` is read after the loop")
        ordered = self._in_order(bound)
        self.carried = [n for n in ordered if n in flow.early or (n in after and n in before)]
        self.last = [n for n in ordered if n in after and n not in self.carried]
        self.temporaries = frozenset(n for n in ordered if n not in self.carried and n not in self.last) | frozenset(self.targets)
        if lacking := [n for n in self.carried if n not in before]:
            raise NoFix(f"`{lacking[0]}` has no value before the loop")
        for name in self.lists:
            self._check_list(name)
        if not self.carried and not self.appends:
            raise NoFix("no value is carried from one iteration to the next")

    def _in_order(self, names):
        seen = []
        for statement in self.body:
            for part in ast.walk(statement):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and part.id in names and part.id not in seen:
                    seen.append(part.id)
        return seen + sorted(n for n in names if n not in seen)

    def _scope_nodes(self):
        """Nodes of the function, or of the module, in which the loop is."""
        return ast.walk(self.scope)

    def _bound_before(self):
        found = set()
        if isinstance(self.scope, ast.FunctionDef):
            found |= {arg.arg for arg in ast.walk(self.scope.args) if isinstance(arg, ast.arg)}
        for node in self._scope_nodes():
            is_before = getattr(node, "lineno", 1 << 30) < self.loop.lineno and node is not self.scope
            if is_before and isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                if _lint_source.enclosing_function(node) is self.scope:
                    found.add(node.id)
        return found

    def _read_after(self):
        """Names whose values are read after the loop: by later statements, by the next iteration of a loop around it, or by
        functions."""
        flow, node = _Flow(), self.loop
        while node is not self.scope:
            parent = node.parent
            for field in ("body", "orelse", "finalbody"):
                block = getattr(parent, field, None)
                if isinstance(block, list) and node in block:
                    for statement in block[block.index(node) + 1 :]:
                        flow.visit(statement)
                    if isinstance(parent, _lint_source.LOOPS):
                        flow.visit(parent.test if isinstance(parent, ast.While) else parent.target)
                        for statement in block[: block.index(node) + 1]:
                            flow.visit(statement)
            node = parent
        return flow.early | self._read_by_functions()

    def _read_by_functions(self):
        own, found = {id(node) for node in ast.walk(self.loop)}, set()
        for node in self._scope_nodes():
            if isinstance(node, (ast.FunctionDef, ast.Lambda)) and node is not self.scope and id(node) not in own:
                flow = _Flow()
                flow.visit(node)
                found |= flow.early
        return found

    def _check_list(self, name):
        block = next(getattr(self.loop.parent, field) for field in ("body", "orelse", "finalbody")
                     if self.loop in (getattr(self.loop.parent, field, None) or ()))  # fmt: skip
        earlier = block[: block.index(self.loop)]
        made = [s for s in earlier if isinstance(s, ast.Assign) and [*map(_lint_source.dotted, s.targets)] == [name]]
        is_empty = made and isinstance(made[-1].value, ast.List) and not made[-1].value.elts
        between = earlier[earlier.index(made[-1]) + 1 :] if made else []
        if not is_empty or any(name in _lint_source.read_names(s) for s in between):
            raise NoFix(f"`{name}` is not an empty list before the loop")

    # ---- text

    def _name(self, wanted):
        taken = {n.id for n in ast.walk(self.source.tree) if isinstance(n, ast.Name)}
        taken |= {n.name for n in ast.walk(self.source.tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
        name, i = wanted, 2
        while name in taken:
            name, i = f"{wanted}{i}", i + 1
        return name

    def _body_text(self, replaced=()):
        """The body as lines of a function at the indentation of the loop."""
        source, first = self.source, self.loop.body[0]
        inner = self.source.indent(first) if first.lineno > self.loop.lineno else self.source.indent(self.loop) + "    "
        if first.lineno == self.loop.lineno:  # for ...: x = f(x)
            text = "".join(f"{inner}{source.segment(s)}\n" for s in self.body)
            return inner, self._replace(text, replaced)
        begin = source.line_start(self._first_body_line())
        end = source.statement_span(self.loop.body[-1])[1]
        text, cuts = source.text[begin:end], []
        for append in self.appends:
            b, e = source.statement_span(append.statement)
            cuts.append((b - begin, e - begin, ""))
        for node, new in replaced:
            b, e = source.span(node)
            cuts.append((b - begin, e - begin, new))
        for b, e, new in sorted(cuts, reverse=True):
            if 0 <= b <= e <= len(text):
                text = text[:b] + new + text[e:]
        return inner, text if text.endswith("\n") or not text else text + "\n"

    def _first_body_line(self):
        """Comments between the header and the first statement belong to the body."""
        line = _lint_source.first_line(self.loop.body[0])
        header = max(self.loop.iter.end_lineno, self.loop.target.end_lineno)
        while line - 1 > header and self.source.lines[line - 2].lstrip().startswith("#"):
            line -= 1
        return line

    @staticmethod
    def _replace(text, replaced):
        if replaced:
            raise NoFix("the body is on the line of the loop")
        return text

    def _range(self):
        call = self.loop.iter
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range" and not call.keywords):
            return None
        words = [self.source.segment(a) for a in call.args]
        return {1: ["0", *words, "1"], 2: [*words, "1"], 3: words}.get(len(words))

    def _uses_of_index(self):
        index = self.targets[0] if len(self.targets) == 1 else None
        return [n for s in self.loop.body for n in ast.walk(s) if isinstance(n, ast.Name) and n.id == index]

    def changes(self):
        """The ways to write the loop, the simplest first."""
        bounds = self._range()
        ways = []
        if bounds is None:
            ways = self._over_sequence()
        else:
            begin, end, step = bounds
            if not self.appends and not self.last and step == "1":
                ways.append(lambda: self._fori(begin, end))
            elif not self._uses_of_index() and step == "1" and begin == "0":
                ways.append(lambda: self._scan("None", length=end))
            else:
                numpy, extra = _lint_source.name_of(self.source, "jax.numpy")
                words = ", ".join([begin, end] + ([step] if step != "1" else [])) if begin != "0" or step != "1" else end
                ways.append(lambda: self._scan(f"{numpy}.arange({words})", extra=extra))
            if self._indexed_lists():
                ways.append(self._scan_rows)
        found = []
        for way in ways:
            found.append(way())
        return found

    def _over_sequence(self):
        """A list of arrays is stacked; an array is scanned as it is. Which one it is shows when it runs."""
        iterable = self.loop.iter
        is_call = isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name) and not iterable.keywords
        parts, numbered = [iterable], None
        if is_call and iterable.func.id == "enumerate" and len(iterable.args) == 1:
            parts, numbered = [iterable.args[0]], True
        elif is_call and iterable.func.id == "zip":
            parts = iterable.args
        texts = [self.source.segment(part) for part in parts]
        numpy, extra = _lint_source.name_of(self.source, "jax.numpy")
        ways = []
        for form in ("{0}", f"{numpy}.stack({{0}})", "jax.tree.map(lambda *rows: " + numpy + ".stack(rows), *{0})"):
            rows = [form.format(text) for text in texts]
            if numbered:
                rows.insert(0, f"{numpy}.arange(len({texts[0]}))")
            over = rows[0] if len(rows) == 1 else f"({', '.join(rows)})"
            more = (extra if numpy in over else "") + ("" if "jax.tree" not in over else _lint_source.name_of(self.source, "jax.tree")[1])
            ways.append(lambda over=over, more=more: self._scan(over, extra=more))
        return ways

    def _indexed_lists(self):
        """Names of sequences that the body only indexes with the loop's variable: {name: [nodes]}."""
        found = {}
        uses = self._uses_of_index()
        for use in uses:
            parent = use.parent
            is_element = isinstance(parent, ast.Subscript) and parent.slice is use and isinstance(parent.value, ast.Name)
            if not is_element or not isinstance(parent.ctx, ast.Load) or parent.value.id in self.carried:
                return {}
            found.setdefault(parent.value.id, []).append(parent)
        return found

    def _scan_rows(self):
        """for i in range(n): x = f(x, ws[i]) as a scan over the stacked ws."""
        lists, (begin, end, step) = self._indexed_lists(), self._range()
        numpy, extra = _lint_source.name_of(self.source, "jax.numpy")
        rows, replaced = [], []
        for name, nodes in lists.items():
            whole = f"len({name})" == end and begin == "0" and step == "1"
            part = name if whole else f"{name}[{'' if begin == '0' else begin}:{end}{'' if step == '1' else ':' + step}]"
            rows.append((self._name(f"{name}_i"), f"jax.tree.map(lambda *rows: {numpy}.stack(rows), *{part})"))
            replaced += [(node, rows[-1][0]) for node in nodes]
        over = rows[0][1] if len(rows) == 1 else f"({', '.join(row for _, row in rows)})"
        return self._scan(over, targets=[name for name, _ in rows], replaced=replaced, extra=extra)

    def _pack(self, names):
        return names[0] if len(names) == 1 else f"({', '.join(names)})" if names else "None"

    def _made(self, text, imports, title):
        begin = self.source.line_start(self.loop.lineno)
        end = self.source.statement_span(self.loop)[1]
        kept = [line for line in imports if line]
        return Change(title, self.source, [(begin, end, text)], kept, self.temporaries, _TOLERANCE,
                      function=qualified_name(self.loop))  # fmt: skip

    def _fori(self, begin, end):
        lax, extra = _lint_source.name_of(self.source, "jax.lax")
        name, indent = self._name("loop_body"), self.source.indent(self.loop)
        inner, body = self._body_text()
        single = len(self.carried) == 1
        carry = self.carried[0] if single else self._name("carry")
        unpack = "" if single else f"{inner}{', '.join(self.carried)} = {carry}\n"
        text = (f"{indent}def {name}({self.targets[0]}, {carry}):\n{unpack}{body}{inner}return {', '.join(self.carried)}\n\n"
                f"{indent}{', '.join(self.carried)} = {lax}.fori_loop({begin}, {end}, {name}, {self._pack(self.carried)})\n")  # fmt: skip
        return self._made(text, [extra], "the loop is one jax.lax.fori_loop")

    def _scan(self, over, length=None, targets=None, replaced=(), extra=""):
        lax, more = _lint_source.name_of(self.source, "jax.lax")
        name, indent = self._name("loop_body"), self.source.indent(self.loop)
        inner, body = self._body_text(replaced)
        targets = self.targets if targets is None else targets
        carry = self.carried[0] if len(self.carried) == 1 else self._name("carry")
        item = "_" if over == "None" else targets[0] if len(targets) == 1 else self._name("item")
        shape = self.source.segment(self.loop.target) if targets is self.targets else ", ".join(targets)
        unpack = f"{inner}{', '.join(self.carried)} = {carry}\n" if len(self.carried) > 1 else ""
        unpack += f"{inner}{shape} = {item}\n" if item != "_" and (len(targets) > 1 or not shape.isidentifier()) else ""
        stacked = [self.source.segment(a.value) for a in self.appends] + self.last
        outs = [self._name(f"{a.name}_rows") if a.is_number else a.name for a in self.appends] + [self._name(f"{n}_rows") for n in self.last]
        results = f"{self._pack(self.carried)}, {self._pack(stacked)}"
        called = f"{over}, length={length}" if length else over
        out = f"{self._pack(self.carried) if self.carried else '_'}, {self._pack(outs) if outs else '_'}"
        text = (f"{indent}def {name}({carry}, {item}):\n{unpack}{body}{inner}return {results}\n\n"
                f"{indent}{out} = {lax}.scan({name}, {self._pack(self.carried)}, {called})\n")  # fmt: skip
        for append, rows in zip(self.appends, outs):
            if append.is_number:
                device_get, needs = _lint_source.name_of(self.source, "jax.device_get")
                extra += needs
                text += f"{indent}{append.name} = {device_get}({rows}).tolist()\n"
        for name_of_last, rows in zip(self.last, outs[len(self.appends) :]):
            text += f"{indent}{name_of_last} = {rows}[-1]\n"
        return self._made(text, [more, *extra.splitlines(keepends=True)], "the loop is one jax.lax.scan")


def changes(source, loop):
    """The Changes that rewrite a loop, the simplest first. Raises NoFix."""
    return LoopWriter(source, loop).changes()
