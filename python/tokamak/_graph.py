"""tokamak.graph(f, *args): the program of a function, its plan and its decisions as objects, which can be edited."""

import contextlib
import ctypes
import functools
import json
import os
import pathlib

from tokamak import _library
from tokamak._explain import frame, option_structs, written
from tokamak._graph_objects import (Array, Computation, Decision, Diff, GraphError, Instruction, Kernel, Match, OptimizedInstruction, Path,
                                    Program, bytes_of, check, matches, on_line)  # fmt: skip
from tokamak._graph_run import Compiled, Signature, traced

_PATHS = 100  # listed by paths() unless asked for more (chosen: what people read)


def _numbers(instrs):
    return (ctypes.c_int64 * len(instrs))(*(instr.number for instr in instrs))


class _Handle:
    """Owns a tok_graph or a tok_plan."""

    def __init__(self, pointer, free):
        self.pointer, self._free = pointer, getattr(_library.load(), free)

    def __del__(self):
        self._free(self.pointer)


def _made(function, free, *arguments):
    """The handle that a function of the C API makes."""
    pointer = ctypes.c_void_p()
    check(getattr(_library.load(), function)(*arguments, ctypes.byref(pointer)))
    return _Handle(pointer, free)


def _text(function, *arguments):
    text = ctypes.c_char_p()
    check(getattr(_library.load(), function)(*arguments, ctypes.byref(text)))
    return text.value.decode(errors="replace")


def _read(text, name):
    """The handle of a module."""
    return _made("tok_module_read", "tok_module_free", text, len(text), name.encode())


class _Plan:
    """How a graph is compiled: a tok_plan with its JSON."""

    def __init__(self, handle):
        self.handle = handle

    @functools.cached_property
    def data(self):
        return json.loads(_text("tok_plan_json", self.handle.pointer))

    @functools.cached_property
    def decisions(self):
        return json.loads(_text("tok_plan_decisions", self.handle.pointer))

    def why(self, step):
        text, data = ctypes.c_char_p(), ctypes.c_char_p()
        check(_library.load().tok_plan_why(self.handle.pointer, step, ctypes.byref(text), ctypes.byref(data)))
        return data.value.decode(errors="replace")

    def boundary(self, producer, consumer):
        text, data = ctypes.c_char_p(), ctypes.c_char_p()
        check(_library.load().tok_plan_boundary(self.handle.pointer, producer, consumer, ctypes.byref(text), ctypes.byref(data)))
        return json.loads(data.value.decode(errors="replace"))

    def explain(self, **options):
        given = option_structs(options)
        return _text("tok_plan_explain", self.handle.pointer, given, len(given))

    def diff(self, other):
        text, data = ctypes.c_char_p(), ctypes.c_char_p()
        check(_library.load().tok_plan_diff(self.handle.pointer, other.handle.pointer, ctypes.byref(text), ctypes.byref(data)))
        return Diff(text.value.decode(errors="replace"), json.loads(data.value.decode(errors="replace")))

    @functools.cached_property
    def steps_of(self):
        """The numbers of the steps that compute each instruction."""
        steps = {}
        for step, members in enumerate(self.data["graph"]["members"]):
            for number in members:
                steps.setdefault(number, []).append(step)
        return steps

    @functools.cached_property
    def _edges(self):
        """By step and direction: the arrays between steps, {array: (bytes, the steps at the other ends)}."""
        found = {}
        for edge in self.data["graph"]["edges"]:
            for side, other in (("to", "from"), ("from", "to")):
                if edge[side] is not None and edge["value"] is not None:
                    array = found.setdefault((side, edge[side]), {}).setdefault(edge["value"], (edge["bytes"], []))
                    array[1].append(edge[other])
        return found

    def reads(self, graph, step):
        found = []
        for value, (nbytes, producers) in self._edges.get(("to", step), {}).items():
            producer = None if producers[0] is None else graph.kernels[producers[0]]
            found.append(Array(graph.optimized[value], nbytes, producer, [graph.kernels[step]]))
        return found

    def writes(self, graph, step):
        found = []
        for value in self.data["graph"]["steps"][step]["made"]:
            instr = graph.optimized[value]
            consumers = self._edges.get(("from", step), {}).get(value, (0, ()))[1]
            consumers = [graph.kernels[other] for other in dict.fromkeys(consumers) if other is not None]
            found.append(Array(instr, bytes_of(instr.type), graph.kernels[step], consumers))
        return found


class Graph:
    """A program, its plan and its decisions. Edits change the program in place; the plan is made when it is asked for."""

    def __init__(self, handle, signature, options, family=None):
        self._family = family or object()  # shared by copies, whose instructions have the same numbers
        self._handle, self._signature, self._plan_options = handle, signature, options
        self.diff = None  # of replan(): how the plan differs from that before
        self._instrs = {}
        self._edited()

    def _edited(self):
        for name in ("_program", "_planned", "computations", "kernels", "decisions", "optimized", "_executable", "_attribute_cache"):
            self.__dict__.pop(name, None)

    # ---- the program

    @functools.cached_property
    def _program(self):
        return Program(_text("tok_graph_json", self._handle.pointer))

    @functools.cached_property
    def computations(self):
        """All computations."""
        return [Computation(self, index) for index in range(len(self._program.data["computations"]))]

    @functools.cached_property
    def _attribute_cache(self):
        return {}

    def _attributes(self, number):
        if number not in self._attribute_cache:
            self._program.row(number)
            self._attribute_cache[number] = json.loads(_text("tok_graph_attributes", self._handle.pointer, number))
        return self._attribute_cache[number]

    def _instr(self, number):
        instr = self._instrs.get(number)
        if instr is None:
            instr = self._instrs[number] = Instruction(self, number)
        return instr

    @property
    def name(self):
        return self._program.data["name"]

    @property
    def entry(self):
        """The entry computation; None if there is none."""
        index = self._program.data["entry"]
        return None if index is None else self.computations[index]

    @property
    def instructions(self):
        """The instructions of all computations."""
        return [self._instr(number) for number in self._program.rows]

    @property
    def parameters(self):
        return self.entry.parameters if self.entry else []

    @property
    def results(self):
        """The instructions whose values the program returns."""
        root = self.entry.root
        return root.operands if root.op == "tuple" else [root]

    def find(self, op=None, name=None, line=None, scope=None, computation=None, where=None):
        """The instructions with these properties, in program order. `op`, `name` and `scope` are patterns with * and ?, or lists of
        them; a scope may also be one part of it, such as "jvp(loss)". `line` is 12, "train.py" or "train.py:12"; `computation` a
        computation or its name; `where` a function of an instruction."""
        within = getattr(computation, "name", computation)

        def fits(instr):
            return (
                (op is None or matches(instr.op, op))
                and (name is None or matches(instr.name, name))
                and (line is None or on_line(instr.lines, line))
                and (scope is None or matches(instr.scope, scope) or any(matches(part, scope) for part in instr.scope.split("/")))
                and (within is None or matches(instr.computation.name, within))
                and (where is None or where(instr))
            )

        return [instr for instr in self.instructions if fits(instr)]

    def __getitem__(self, key):
        """g["dot.1"]: the instruction of this name. g["train.py:10":"train.py:20"]: instructions from these lines, the last excluded.
        g[instr]: what an instruction of a copy is here."""
        if isinstance(key, slice):
            return self._between_lines(key)
        if isinstance(key, Instruction):
            return self._own([key], "graph")[0]
        number = self._program.names.get(key)
        if number is None:
            import difflib

            near = difflib.get_close_matches(str(key), self._program.names, 3, 0.5)
            raise KeyError(f"the graph has no instruction {key!r}" + (f"; did you mean {', '.join(near)}?" if near else ""))
        return self._instr(number)

    def _between_lines(self, lines):
        def split(text, otherwise):
            file, _, number = (":" + str(otherwise) if text is None else str(text)).rpartition(":")
            return file, int(number)

        (first_file, first), (last_file, last) = split(lines.start, 0), split(lines.stop, 1 << 31)
        file = first_file or last_file

        def inside(instr):
            positions = (text.split(" (")[0].rpartition(":") for text in instr.lines)
            return any((not file or p[0] == file or p[0].endswith("/" + file)) and first <= int(p[2]) < last for p in positions)

        return [instr for instr in self.instructions if inside(instr)]

    def __contains__(self, key):
        if isinstance(key, Instruction):
            return key.graph is self and key.number in self._program.rows
        return key in self._program.names

    def __iter__(self):
        return iter(self.instructions)

    def __len__(self):
        return len(self._program.rows)

    def _ipython_key_completions_(self):
        return list(self._program.names)

    def match(self, pattern, *examples, any_shape=True):
        """The instances of a pattern: what computes the same as a JAX function, by the same ops, up to the order of operands of
        commutative ops and broadcasts of numbers. `examples` are arrays or jax.ShapeDtypeStructs for its parameters; without them
        they are f32 scalars. `any_shape`: dimensions may differ. Instances may overlap."""
        import inspect

        import jax

        if not examples:
            count = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in inspect.signature(pattern).parameters.values())
            examples = [jax.ShapeDtypeStruct((), "float32")] * count
        module = _read(traced(pattern, [(e.shape, e.dtype, "") for e in examples]), "<traced>")
        matches, count = ctypes.POINTER(_library.TokMatch)(), ctypes.c_size_t()
        self._call("tok_graph_match", self._handle, module.pointer, int(any_shape), ctypes.byref(matches), ctypes.byref(count))

        def instrs(numbers, size):
            return [self._instr(number) for number in numbers[:size]]

        return [Match(instrs(m.results, m.num_results), instrs(m.variables, m.num_variables), instrs(m.inner, m.num_inner))
                for m in matches[: count.value]]  # fmt: skip

    def path(self, a, b):
        """A shortest path of dependences from `a` to `b`, with the boundaries between kernels on it; None if there is none."""
        a, b = self._own([a, b], "path")
        numbers, count = ctypes.POINTER(ctypes.c_int64)(), ctypes.c_size_t()
        library = _library.load()
        check(library.tok_graph_path(self._handle.pointer, a.number, b.number, ctypes.byref(numbers), ctypes.byref(count)))
        return Path(self, numbers[: count.value]) if count.value else None

    def paths(self, a, b, limit=_PATHS):
        """All paths from `a` to `b` within their computation, shortest first, at most `limit`."""
        a, b = self._own([a, b], "paths")
        before = {b.number}  # what b depends on
        pending = [b]
        while pending:
            for operand in pending.pop().operands:
                if operand.number not in before:
                    before.add(operand.number)
                    pending.append(operand)
        found, open_paths = [], [(a.number,)]
        while open_paths and len(found) < limit:
            longer = []
            for path in open_paths:
                if path[-1] == b.number:
                    found.append(Path(self, path))
                else:
                    longer += [(*path, user) for user in self._program.users.get(path[-1], ()) if user in before]
            open_paths = longer[: 16 * limit]
        return found[:limit]

    # ---- the plan

    @functools.cached_property
    def _planned(self):
        given = option_structs(self._plan_options)
        return _Plan(_made("tok_graph_plan", "tok_plan_free", self._handle.pointer, given, len(given)))

    @functools.cached_property
    def kernels(self):
        """The steps of the plan in execution order: kernels, library calls, host steps and copies."""
        return [Kernel(self, index) for index in range(len(self._planned.data["report"]["kernels"]))]

    @functools.cached_property
    def decisions(self):
        """All decisions of the compiler, in order."""
        return [Decision(self, data) for data in self._planned.decisions]

    @functools.cached_property
    def optimized(self):
        """The instructions of the program after the passes."""
        instrs = self._planned.data["graph"].get("instrs", ())
        return [OptimizedInstruction(self, index) for index in range(len(instrs))]

    @property
    def costs(self):
        """Totals of the plan: kernels, library_calls, host_steps, copies, bytes, predicted_us, peak_bytes, planning_ms ..."""
        return dict(self._planned.data["report"].get("fused", {}))

    @property
    def target(self):
        return self._plan_options["target"]

    def replan(self, fusion=None, fuse=(), never_fuse=(), require_fused=(), schedules=None, **options):
        """A copy with another plan, whose `diff` compares the two. `fusion`: "search", "greedy", "rules" or "none". `fuse`,
        `never_fuse`, `require_fused`: instructions, their names or lines; or a list of such lists, each a constraint of its own.
        `schedules`: {kernel name: schedule}. Others are compile options (tokamak.options()), `target` and `measure`."""
        new = self.copy()
        for kind, wanted in (("fuse", fuse), ("never_fuse", never_fuse), ("require_fused", require_fused)):
            new._pin(kind, wanted)
        if fusion is not None:
            options["tokamak_fusion"] = fusion
        if schedules:
            options["tokamak_schedule"] = ";".join(f"{name}={schedule}" for name, schedule in schedules.items())
        new._plan_options = {**self._plan_options, **options}
        new.diff = self._planned.diff(new._planned)
        return new

    def _pin(self, kind, wanted):
        groups = [wanted] if isinstance(wanted, (str, Instruction)) or not all(isinstance(w, (list, tuple)) for w in wanted) else wanted
        for group in groups:
            instrs = []
            for one in [group] if isinstance(group, (str, Instruction)) else group:
                instrs += [self[one]] if isinstance(one, Instruction) or one in self else self.find(line=one) or [self[one]]
            if not instrs:
                continue
            labels = {value for instr in instrs for key, value in instr.attributes.items() if key == f"tokamak.{kind}"}
            label = min(labels) if labels else f"graph.{kind}.{min(instr.number for instr in instrs)}"
            pinned = [instr for instr in instrs if instr.op != "parameter"]
            with self._edit() as handle:
                self._call("tok_graph_pin", handle, _numbers(pinned), len(pinned), kind.encode(), label.encode())

    # ---- edits

    @contextlib.contextmanager
    def _edit(self):
        """The handle of a copy, which replaces the graph's own if nothing is raised."""
        handle = _made("tok_graph_copy", "tok_graph_free", self._handle.pointer)
        yield handle
        self._handle = handle
        self._edited()

    @staticmethod
    def _call(function, handle, *arguments):
        check(getattr(_library.load(), function)(handle.pointer, *arguments))

    def _own(self, instrs, edit):
        """The instructions of this graph: names are looked up, and so is what copies share."""
        own = []
        for instr in instrs:
            if isinstance(instr, str):
                instr = self[instr]
            if not isinstance(instr, Instruction):
                raise TypeError(f"{edit}: expected an instruction or its name, got {type(instr).__name__}")
            if instr.graph is not self:
                here = self._program.rows.get(instr.number) if instr.graph._family is self._family else None
                if here is None or here[1:3] != instr._row()[1:3]:
                    raise GraphError(f"{edit}: {instr!r} belongs to another graph")
                instr = self._instr(instr.number)
            self._program.row(instr.number)
            own.append(instr)
        return own

    def _add(self, handle, function, operands, beside=None):
        """Adds what a function computes from instructions; returns the numbers of its results."""
        module = _read(traced(function, [(o.shape, o.dtype, o.type) for o in operands]), "<traced>")
        numbers = _numbers(operands)
        fragment = _library.TokFragment(ctypes.sizeof(_library.TokFragment), module.pointer, numbers, len(operands),
                                        -1 if beside is None else beside.number)  # fmt: skip
        results, count = ctypes.POINTER(ctypes.c_int64)(), ctypes.c_size_t()
        self._call("tok_graph_add", handle, ctypes.byref(fragment), ctypes.byref(results), ctypes.byref(count))
        return results[: count.value]

    def add(self, function, *operands):
        """Adds the instructions of a JAX function of these instructions. Nothing uses them yet. Returns its result, or a list."""
        operands = self._own(operands, "add")
        with self._edit() as handle:
            results = self._add(handle, function, operands)
        made = [self._instr(number) for number in results]
        return made[0] if len(made) == 1 else made

    def replace(self, instr, by, operands=None):
        """Replaces an instruction by another one of its shape, by a list of them for the elements of a tuple, or by what a JAX
        function computes from its operands (or from `operands`). Removes what only it used. Returns the new value."""
        (instr,) = self._own([instr], "replace")
        is_function = callable(by)
        values = None if is_function else self._own(by if isinstance(by, (list, tuple)) else [by], "replace")
        operands = self._own(instr.operands if operands is None else operands, "replace") if is_function else []
        with self._edit() as handle:
            numbers = self._add(handle, by, operands, instr) if is_function else [value.number for value in values]
            self._call("tok_graph_replace", handle, instr.number, (ctypes.c_int64 * len(numbers))(*numbers), len(numbers))
        made = [self._instr(number) for number in numbers]
        return made[0] if len(made) == 1 else made

    def insert(self, after, function, operands=None, users=None):
        """Computes a JAX function of an instruction (or of `operands`) and makes the users of the instruction use the result: all
        of them and the program's result, or `users`. Returns the new instruction."""
        (after,) = self._own([after], "insert")
        operands = self._own([after] if operands is None else operands, "insert")
        users = None if users is None else self._own(users, "insert")
        with self._edit() as handle:
            made = self._add(handle, function, operands, after)
            if len(made) != 1:
                raise GraphError(f"insert: the function returns {len(made)} values, not one")
            listed = (None, 0) if users is None else (_numbers(users), len(users))
            self._call("tok_graph_replace_uses", handle, after.number, made[0], *listed)
        return self._instr(made[0])

    def set_operand(self, user, index, instr):
        """Makes `instr` the operand number `index` of `user`."""
        user, instr = self._own([user, instr], "set_operand")
        with self._edit() as handle:
            self._call("tok_graph_set_operand", handle, user.number, index, instr.number)

    def remove(self, instr):
        """Removes an instruction that nothing uses."""
        (instr,) = self._own([instr], "remove")
        with self._edit() as handle:
            self._call("tok_graph_remove", handle, instr.number)

    def outline(self, instrs, name):
        """Moves instructions into a new computation and returns the call that replaces them."""
        instrs = self._own(instrs, "outline")
        call = ctypes.c_int64()
        with self._edit() as handle:
            self._call("tok_graph_outline", handle, _numbers(instrs), len(instrs), name.encode(), ctypes.byref(call))
        return self._instr(call.value)

    def inline(self, call):
        """Replaces a call by the instructions of its computation."""
        (call,) = self._own([call], "inline")
        with self._edit() as handle:
            self._call("tok_graph_inline", handle, call.number)

    def copy(self):
        """A graph that can be edited separately. Instructions of one stand for the same ones of the other until they are removed."""
        handle = _made("tok_graph_copy", "tok_graph_free", self._handle.pointer)
        return Graph(handle, self._signature, dict(self._plan_options), self._family)

    # ---- results

    def compile(self, backend=None, **options):
        """An object that runs the program on arrays. Without arguments it runs this plan, on this processor. `backend` ("cpu",
        "cuda", "interp") and compile options make another plan."""
        if backend is None and not options:
            return Compiled(_made("tok_plan_compile", "tok_executable_free", self._planned.handle.pointer), self._signature)
        own = {name: value for name, value in self._plan_options.items() if name.startswith("tokamak_")}
        given = option_structs({**own, **options, **({} if backend is None else {"tokamak_backend": backend})})
        module = _made("tok_graph_module", "tok_module_free", self._handle.pointer)
        return Compiled(_made("tok_compile", "tok_executable_free", module.pointer, given, len(given)), self._signature)

    @functools.cached_property
    def _executable(self):
        return self.compile()

    def __call__(self, *args, **kwargs):
        """Runs the program on this processor. Arguments and results have the structure of the function's; arrays are NumPy's."""
        return self._executable(*args, **kwargs)

    def text(self, format="mlir"):
        """The program as StableHLO ("mlir") or HLO ("hlo") text."""
        return _text("tok_graph_text", self._handle.pointer, format.encode())

    def save(self, path):
        """Writes the program as StableHLO (.mlir) or HLO (.hlo) text. tokamak.graph(path) reads it."""
        path = pathlib.Path(path)
        if path.suffix not in (".mlir", ".hlo"):
            raise GraphError(f"save: the name ends in .mlir or .hlo, not {path.suffix or path.name!r}")
        path.write_text(self.text(path.suffix[1:]), encoding="utf-8")

    def to_networkx(self, kind="instructions"):
        """A networkx.DiGraph. "instructions": nodes are names, with the fields of an instruction. "kernels": nodes are the numbers of
        kernels; edges have the bytes of the arrays between them."""
        from tokamak import _graph_networkx

        return _graph_networkx.export(self, kind)

    def dot(self):
        """The plan as a graph for Graphviz."""
        return self._planned.explain(dot="true")

    def html(self, file=None):
        """The compile report of the plan as a page for browsers. Writes it to `file`, or returns it."""
        return written(self._planned.explain(html="true"), file)

    def explain(self):
        """The compile report of the plan as text."""
        return self._planned.explain()

    def _repr_html_(self):
        return frame(self.html(), "Compile report")

    def __repr__(self):
        text = f"<graph {self.name}: {len(self)} instructions"
        if "_planned" in self.__dict__:
            text += f", {len(self.kernels)} kernels, {self.costs.get('predicted_us', 0):.3g} us predicted on {self.target}"
        return text + ">"


def graph(f, *args, tokamak_target="host", tokamak_measure=False, tokamak_options=None, **kwargs):
    """The graph of `f(*args, **kwargs)`, a function or the result of jax.jit; or of the program in a file, if `f` is the path of
    a .mlir, .mlirbc or .hlo file. A function is traced and lowered, not run.

    tokamak_target: "host" or "h200". tokamak_measure: runs the kernels individually for their measured_us.
    tokamak_options: the options of jax.jit(f, compiler_options=...)."""
    if not _library.has("tok_graph_of"):
        raise NotImplementedError("tokamak.graph: this libtokamak.so is older than the package")
    options = {"target": tokamak_target, "measure": tokamak_measure, **(tokamak_options or {})}
    if isinstance(f, (str, os.PathLike)):
        if args or kwargs:
            raise TypeError("graph: a file takes no arguments")
        module, signature = _made("tok_module_read_file", "tok_module_free", os.fspath(f).encode(), 0), Signature()
    else:
        text, signature = Signature.of(f, args, kwargs)
        module = _read(text, "<traced>")
    return Graph(_made("tok_graph_of", "tok_graph_free", module.pointer), signature, options)
