"""What a graph consists of: instructions, computations, kernels, decisions. A graph creates them when they are asked for."""

import fnmatch
import json
import math
import re

from tokamak import _library


class GraphError(ValueError):
    """An edit or a request that is not possible; the text has the reason and the location."""


def dtype_of(hlo):
    """The NumPy dtype of an element type of HLO."""
    from tokamak._host_calls import _dtype

    try:
        return _dtype(hlo)
    except TypeError:
        raise GraphError(f"{hlo} is no type of array elements") from None


def bytes_of(type_text):
    """The size of the arrays of a type as text: "f32[4,8]", "(f32[2], s32[])"."""
    sizes = ((dtype_of(hlo).itemsize, dims) for hlo, dims in re.findall(r"(\w+)\[([\d,]*)\]", type_text))
    return sum(size * math.prod(int(dim) for dim in dims.split(",") if dim) for size, dims in sizes)


class Instruction:
    """An instruction of a graph. It stays valid while edits keep the instruction."""

    __slots__ = ("graph", "number")

    def __init__(self, graph, number):
        self.graph, self.number = graph, number

    def _row(self):
        return self.graph._program.row(self.number)

    name = property(lambda self: self._row()[1], doc="Unique in the graph.")
    op = property(lambda self: self._row()[2], doc='The op by its HLO name: "dot".')
    type = property(lambda self: self._shape()["text"], doc='"f32[16,8]".')

    def _shape(self):
        return self.graph._program.data["shapes"][self._row()[3]]

    @property
    def shape(self):
        """The dimensions; of a tuple, the dimensions of each element."""
        shape = self._shape()
        return tuple(shape["dims"]) if "dims" in shape else tuple(tuple(e.get("dims", ())) for e in shape["elements"])

    @property
    def dtype(self):
        """The NumPy dtype; of a tuple, that of each element."""
        shape = self._shape()
        return dtype_of(shape["type"]) if "type" in shape else tuple(dtype_of(e["type"]) for e in shape["elements"])

    @property
    def computation(self):
        return self.graph.computations[self._row()[4]]

    @property
    def operands(self):
        return [self.graph._instr(number) for number in self._row()[5]]

    @property
    def users(self):
        return [self.graph._instr(number) for number in self.graph._program.users.get(self.number, ())]

    @property
    def called(self):
        """The computations that it calls: the body of a loop, the branches of a conditional."""
        return [self.graph.computations[index] for index in self._row()[6]]

    @property
    def lines(self):
        """The lines of source that it comes from: ["train.py:12 (loss)"]."""
        lines = [self.graph._program.data["lines"][index] for index in self._row()[7]]
        # Of a traced function, positions in the traced text say nothing.
        return [line for line in lines if not line.startswith("<traced>:")]

    @property
    def line(self):
        lines = self.lines
        return lines[0] if lines else None

    @property
    def scope(self):
        """Where it was traced: "jit(f)/jvp(layer_1)/dot_general"; "" if unknown."""
        index = self._row()[8]
        return "" if index < 0 else self.graph._program.data["scopes"][index]

    @property
    def attributes(self):
        """Attributes by their names in HLO text, as a dict; "literal" of a small constant."""
        return self.graph._attributes(self.number)

    @property
    def is_result(self):
        """Whether its computation returns it, alone or in a tuple."""
        root = self.computation.root
        return self == root or root.op == "tuple" and self.number in root._row()[5]

    @property
    def kernels(self):
        """The kernels that compute it, in execution order. More than one if it is recomputed, none if nothing is left of it."""
        self._row()
        return [self.graph.kernels[step] for step in self.graph._planned.steps_of.get(self.number, ())]

    def __repr__(self):
        if self.graph._program.rows.get(self.number) is None:
            return f"<instruction {self.number}, removed>"
        operands = ", ".join(operand.name for operand in self.operands)
        return f"<{self.name} = {self.type} {self.op}({operands}){'  ' + self.line if self.line else ''}>"


class Computation:
    """A computation of a graph: the entry, the body of a loop, a function that is called."""

    __slots__ = ("graph", "index")

    def __init__(self, graph, index):
        self.graph, self.index = graph, index

    def _data(self):
        return self.graph._program.data["computations"][self.index]

    name = property(lambda self: self._data()["name"])
    root = property(lambda self: self.graph._instr(self._data()["root"]), doc="The instruction that it returns.")

    @property
    def parameters(self):
        return [self.graph._instr(number) for number in self._data()["parameters"]]

    @property
    def instructions(self):
        """In program order."""
        return [self.graph._instr(number) for number in self.graph._program.members[self.index]]

    @property
    def callers(self):
        return [instr for instr in self.graph.instructions if self.index in instr._row()[6]]

    @property
    def is_entry(self):
        return self.index == self.graph._program.data["entry"]

    def __iter__(self):
        return iter(self.instructions)

    def __len__(self):
        return len(self.graph._program.members[self.index])

    def __repr__(self):
        return f"<computation {self.name}: {len(self)} instructions>"


class Program:
    """The JSON of a graph's program with its indices."""

    def __init__(self, text):
        self.data = json.loads(text)
        self.rows = {row[0]: row for row in self.data["instrs"]}
        self.order = {number: position for position, number in enumerate(self.rows)}
        self.names = {row[1]: row[0] for row in self.data["instrs"]}
        self.members = [[] for _ in self.data["computations"]]
        self.users = {}
        for row in self.data["instrs"]:
            self.members[row[4]].append(row[0])
            for operand in dict.fromkeys(row[5]):
                self.users.setdefault(operand, []).append(row[0])

    def row(self, number):
        row = self.rows.get(number)
        if row is None:
            raise GraphError(f"instruction {number} was removed from the graph")
        return row


class OptimizedInstruction:
    """An instruction of the program after the passes, which kernels compute."""

    __slots__ = ("graph", "index")

    def __init__(self, graph, index):
        self.graph, self.index = graph, index

    def _data(self):
        return self.graph._planned.data["graph"]["instrs"][self.index]

    name = property(lambda self: self._data()["name"])
    op = property(lambda self: self._data()["op"])
    type = property(lambda self: self._data()["shape"])

    @property
    def operands(self):
        return [self.graph.optimized[index] for index in self._data()["operands"] if index is not None]

    @property
    def kernels(self):
        return [self.graph.kernels[step] for step in self._data()["steps"]]

    @property
    def sources(self):
        """The instructions of the graph that it was made from."""
        numbers = self.graph._planned.data["graph"]["sources"][self.index]
        return [self.graph._instr(number) for number in numbers if number in self.graph._program.rows]

    @property
    def line(self):
        index = self._data().get("line")
        return None if index is None else self.graph._planned.data["graph"]["lines"][index]

    def __repr__(self):
        return f"<{self.name} = {self.type} {self.op}, after the passes>"


class Array:
    """An array that a kernel reads from memory or writes to it."""

    __slots__ = ("name", "type", "bytes", "producer", "consumers", "instruction")

    def __init__(self, instruction, nbytes, producer, consumers):
        self.instruction, self.bytes, self.producer, self.consumers = instruction, nbytes, producer, consumers
        self.name, self.type = instruction.name, instruction.type

    def __repr__(self):
        return f"<array {self.name} {self.type}, {self.bytes} bytes>"


class Decision:
    """A record of one choice of the compiler."""

    __slots__ = ("_data", "graph")

    def __init__(self, graph, data):
        self.graph, self._data = graph, data

    def __getattr__(self, name):
        try:
            return self._data[name]
        except KeyError:
            raise AttributeError(f"a decision has no {name!r}: it has {', '.join(self._data)}") from None

    def __dir__(self):
        return ["accepted", "instructions", "kernels", *self._data]

    accepted = property(lambda self: self._data["verdict"] == "accepted")

    @property
    def instructions(self):
        """The instructions of the graph that its subject was made from."""
        return [self.graph._instr(number) for number in self._data["instrs"] if number in self.graph._program.rows]

    @property
    def kernels(self):
        """The kernels that compute its subject or the other end."""
        return [self.graph.kernels[step] for step in sorted(set(self._data["steps"]))]

    def __str__(self):
        data = self._data
        text = f"{data['verdict']} {data['subject']}" + (f" -> {data['other']}" if data["other"] else "") + f" by {data['rule']}"
        if data["before_us"] or data["after_us"]:
            text += f", {data['before_us']:.3g} us before and {data['after_us']:.3g} after"
        text += f" ({data['because']})" if data["because"] else ""
        return text + (f"; {data['counterfactual']}" if data["counterfactual"] else "")

    def __repr__(self):
        return f"<decision: {self}>"


class Boundary:
    """Why two instructions, or two kernels with an array between them, are apart."""

    def __init__(self, graph, data, producer, consumer):
        self._graph, self._data = graph, data
        self.producer, self.consumer = producer, consumer
        self.reason = data["text"]
        self.array, self.bytes = data.get("array"), data.get("bytes")

    kernel_from = property(lambda self: self._graph.kernels[self._data["from"]])
    kernel_to = property(lambda self: self._graph.kernels[self._data["to"]])
    decisions = property(lambda self: [self._graph.decisions[number] for number in self._data["decisions"]])

    def __str__(self):
        size = "" if self.bytes is None else f" ({self.array}, {self.bytes} bytes)"
        return f"{self.kernel_from.name} | {self.kernel_to.name}{size}: {self.reason}"

    def __repr__(self):
        return f"<boundary {self}>"


class Why:
    """Why instructions share a kernel (`together`: decisions), and what keeps its neighbours apart (`apart`: boundaries, one per
    array). `print` shows the text."""

    def __init__(self, kernel, data):
        graph = kernel.graph
        self.kernel, self._text = kernel, data["text"]
        self.together = [graph.decisions[number] for number in data["together"]]
        self.apart = []
        for entry in data["apart"]:
            steps = (entry["step"], kernel.index) if entry["reads"] else (kernel.index, entry["step"])
            ends = [graph.kernels[step] for step in steps]
            self.apart.append(Boundary(graph, {**entry, "from": steps[0], "to": steps[1]}, *ends))

    def __str__(self):
        return self._text

    __repr__ = __str__


class Kernel:
    """A step of a graph's plan: a kernel, a library call, a host step or a copy. Besides the properties below, it has the fields
    of the compile report: generator, schedule, reads_bytes, writes_bytes, predicted_us, measured_us, calls, library, lines ..."""

    def __init__(self, graph, index):
        self.graph, self.index = graph, index
        self._data = graph._planned.data["report"]["kernels"][index]
        self._step = graph._planned.data["graph"]["steps"][index]

    def __getattr__(self, name):
        data = self.__dict__.get("_data", {})
        if name in data:
            return data[name]
        if name in ("schedule", "why_on_host"):
            return data.get({"why_on_host": "why"}.get(name, name))
        raise AttributeError(f"a kernel has no {name!r}: it has {', '.join(k for k in dir(self) if k[0] != '_')}")

    def __dir__(self):
        own = ["code", "index", "instructions", "optimized", "reads", "schedule", "why", "why_on_host", "writes"]
        return sorted({*own, *self._data} - {"instrs"})

    @property
    def instructions(self):
        """The instructions of the graph that it computes, in program order."""
        order = self.graph._program.order
        members = self.graph._planned.data["graph"]["members"][self.index]
        return [self.graph._instr(number) for number in sorted((n for n in members if n in order), key=order.get)]

    @property
    def optimized(self):
        """The instructions after the passes that it computes."""
        return [self.graph.optimized[index] for index in self._step["instrs"]]

    @property
    def reads(self):
        """The arrays that it reads."""
        return self.graph._planned.reads(self.graph, self.index)

    @property
    def writes(self):
        """The arrays that it writes."""
        return self.graph._planned.writes(self.graph, self.index)

    @property
    def why(self):
        return Why(self, json.loads(self.graph._planned.why(self.index)))

    @property
    def code(self):
        """Its kernel IR and its LLVM IR or CUDA C++; None for steps without a kernel."""
        if self._data["generator"] in ("library", "host", "copy"):
            return None
        return self.graph._planned.explain(kernel=str(self.index + 1))

    def __repr__(self):
        us = self._data["predicted_us"]
        cost = "" if us is None else f", {us:.3g} us predicted"
        moved = f"reads {self._data['reads_bytes']} bytes, writes {self._data['writes_bytes']}"
        return f"<{self._data['generator']} kernel {self._data['name']}: {self._data['ops']} ops, {moved}{cost}>"


class Match:
    """An instance of a pattern: its `results`, the `variables` that stand for the parameters of the pattern, and the other
    instructions (`inner`), which others may use, too."""

    __slots__ = ("inner", "results", "variables")

    def __init__(self, results, variables, inner):
        self.results, self.variables, self.inner = results, variables, inner

    @property
    def instructions(self):
        return self.inner + self.results

    def __repr__(self):
        names = (", ".join(instr.name for instr in instrs) for instrs in (self.results, self.variables))
        return "<match {} of {}>".format(*names)


class Path:
    """A path of dependences: its `instructions`, and the `boundaries` between kernels on it."""

    def __init__(self, graph, numbers):
        self.instructions = [graph._instr(number) for number in numbers]
        self._graph, self._boundaries = graph, None

    @property
    def boundaries(self):
        if self._boundaries is None:
            planned = self._graph._planned
            computed = [instr for instr in self.instructions if instr.number in planned.steps_of]
            found = ((planned.boundary(a.number, b.number), a, b) for a, b in zip(computed, computed[1:], strict=False))
            self._boundaries = [Boundary(self._graph, data, a, b) for data, a, b in found if data is not None]
        return self._boundaries

    def __iter__(self):
        return iter(self.instructions)

    def __len__(self):
        return len(self.instructions)

    def __getitem__(self, index):
        return self.instructions[index]

    def __str__(self):
        at = {boundary.consumer.number: boundary for boundary in self.boundaries}
        lines = []
        for instr in self.instructions:
            if instr.number in at:
                lines.append(f"  ---- {at[instr.number]}")
            lines.append(f"{instr.name} = {instr.type} {instr.op}")
        return "\n".join(lines)

    __repr__ = __str__


class Diff:
    """How two plans differ. `print` shows the text; `data` has all figures."""

    def __init__(self, text, data):
        self._text, self.data = text, data
        self.before, self.after = data["a"]["totals"], data["b"]["totals"]
        self.only_before, self.only_after = data["a"]["only"], data["b"]["only"]
        self.in_both, self.saved_us = data["in_both"], -data["b_minus_a_us"]

    def __str__(self):
        return self._text

    __repr__ = __str__


def matches(value, wanted):
    """Whether a text is `wanted`: a pattern with * and ?, or a collection of them."""
    if isinstance(wanted, str):
        return fnmatch.fnmatchcase(value, wanted)
    return any(matches(value, one) for one in wanted)


def on_line(lines, wanted):
    """Whether one of the lines ("dir/train.py:12 (loss)") is `wanted`: 12, "train.py" or "train.py:12"."""
    for line in lines:
        place = line.split(" (")[0]
        file, _, number = place.rpartition(":")
        if isinstance(wanted, int):
            if number == str(wanted):
                return True
        elif any(text == wanted or text.endswith("/" + wanted) for text in (place, file)):
            return True
    return False


def check(error):
    """Raises an error of the C API."""
    _library.check(error, GraphError)
