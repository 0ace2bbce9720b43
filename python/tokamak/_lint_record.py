"""Records what a process compiles and calls, for the findings that only a run shows. Used in the process of `tokamak lint
script.py` and in that of the pytest plugin.

A *program* is a compiled function; a *site* is a line of the user's that calls one (with the lines around it on the stack).
Arrays are compared by identity, through weak references: recording keeps no array alive."""

import collections
import contextlib
import dataclasses
import weakref

from tokamak import _lint_jax, _lint_keys

_SAME_KEY_CALLS = 10_000  # entries kept about keys that were consumed (chosen: bounds the memory)


@dataclasses.dataclass
class Program:
    number: int
    name: str
    function: str  # as Python names it: "step"
    file: str  # where it is defined; "" if nowhere
    line: int
    is_eager: bool  # an operation that JAX compiled by itself, outside of any jit
    text: str
    jaxpr: object
    arguments: list  # names: "params['w']"
    types: list  # "float32[8]" of each argument
    bytes: list  # of each argument
    donated: list
    result_types: list
    calls: int = 0
    seconds: float = 0.0  # of all calls, as Python sees them
    compile_seconds: float = 0.0  # of the first call
    fed_back: dict = dataclasses.field(default_factory=collections.Counter)  # argument -> calls that passed an earlier result
    consumes: frozenset = frozenset()  # arguments whose keys it consumes


@dataclasses.dataclass
class Site:
    """A line that calls programs. `stack`: (file, line, function), the innermost first."""

    stack: tuple
    program: int
    function: str
    is_eager: bool
    calls: int = 0
    fed_back: int = 0  # calls with a result of the previous call at this site
    repeated: int = 0  # calls with the same arrays as the previous call at this site
    seconds: float = 0.0
    programs: set = dataclasses.field(default_factory=set)
    last_args: tuple = ()
    last_outs: tuple = ()


@dataclasses.dataclass
class Read:
    """A line that copies arrays to the host."""

    stack: tuple
    count: int = 0
    bytes: int = 0
    seconds: float = 0.0


@dataclasses.dataclass
class KeyReuse:
    first: tuple  # stack
    second: tuple
    function: str
    is_library: bool
    count: int = 0


def _type_of(aval):
    weak = "~" if getattr(aval, "weak_type", False) else ""
    return str(getattr(aval, "str_short", lambda: aval)()) + weak


def _bytes_of(aval):
    try:
        return int(aval.size) * aval.dtype.itemsize
    except (AttributeError, TypeError):
        return 0


def _reference(value):
    try:
        return weakref.ref(value)
    except TypeError:
        return (value,)  # a number


def _is(reference, value):
    if isinstance(reference, tuple):
        return type(reference[0]) is type(value) and reference[0] == value if isinstance(value, (int, float, bool)) else False
    return reference() is value


class Recorder:
    """Everything that was recorded. `with recorder:` records."""

    def __init__(self):
        self.programs, self.sites, self.reads, self.key_reuses = [], {}, {}, {}
        self._of_computation = {}  # id -> (computation, Program): the reference keeps the id
        self._made = weakref.WeakValueDictionary()  # id(array) -> array, for results of the user's functions
        self._keys = collections.OrderedDict()  # id(array) -> (weak reference, stack, program, arguments)
        self._exit = contextlib.ExitStack()

    def __enter__(self):
        self._exit.enter_context(_lint_jax.calls(self._on_call, self._on_read))
        return self

    def __exit__(self, *error):
        self._exit.close()

    def _program(self, call):
        known = self._of_computation.get(id(call.computation))
        if known is not None:
            return known[1]
        jaxpr = call.jaxpr.jaxpr
        function, file, line = _lint_jax.source_of(jaxpr)
        names, avals = _lint_jax.argument_names(jaxpr), [v.aval for v in jaxpr.invars]
        program = Program(
            number=len(self.programs), name=call.name, function=function, file=file, line=line, is_eager=_lint_jax.is_jax(file),
            text=_lint_jax.program_text(call.computation), jaxpr=jaxpr, arguments=names, types=[*map(_type_of, avals)],
            bytes=[*map(_bytes_of, avals)], donated=list(call.donated), result_types=[_type_of(v.aval) for v in jaxpr.outvars],
            compile_seconds=call.seconds, consumes=frozenset(_lint_keys.consumed(jaxpr)),
        )  # fmt: skip
        self.programs.append(program)
        self._of_computation[id(call.computation)] = (call.computation, program)
        return program

    def _on_call(self, call):
        if call.computation is None or call.jaxpr is None:
            return
        program = self._program(call)
        program.calls += 1
        program.seconds += call.seconds
        stack, path = _lint_jax.call_path()
        # An operation outside of jit that is dispatched in a library's own loop is not repeated by the user's loop.
        key = (stack, path if program.is_eager else 0, program.function, program.file, program.line)
        site = self.sites.get(key)
        if site is None:
            site = self.sites[key] = Site(stack, program.number, program.function, program.is_eager)
        site.calls += 1
        site.seconds += call.seconds
        site.programs.add(program.number)
        self._compare(site, program, call)
        self._note_keys(program, call, stack)
        if not program.is_eager:
            for out in call.outs:
                self._made[id(out)] = out

    def _compare(self, site, program, call):
        last_outs = [ref() for ref in site.last_outs if not isinstance(ref, tuple)]
        fed = False
        for i, arg in enumerate(call.args):
            if any(arg is out for out in last_outs):
                fed = True
            if self._made.get(id(arg)) is arg:
                program.fed_back[i] += 1
        site.fed_back += fed
        if site.calls > 1 and len(site.last_args) == len(call.args):
            site.repeated += all(map(_is, site.last_args, call.args))
        site.last_args = tuple(map(_reference, call.args))
        site.last_outs = tuple(map(_reference, call.outs))

    def _note_keys(self, program, call, stack):
        """Keys that are consumed by two calls. A call with equal arguments is a repetition, not a second draw."""
        for i in program.consumes:
            if i >= len(call.args):
                continue
            array = _lint_jax.base_array(call.args[i])
            others = tuple(id(_lint_jax.base_array(arg)) for arg in call.args)
            known = self._keys.get(id(array))
            if known is not None and known[0]() is array:
                is_repetition = known[2] == program.number and known[3] == others
                if not is_repetition:
                    at = (known[1][:1], stack[:1], program.function)
                    found = self.key_reuses.setdefault(at, KeyReuse(known[1], stack, program.function, not _lint_jax.is_users(program.file)))
                    found.count += 1
            else:
                with contextlib.suppress(TypeError):
                    self._keys[id(array)] = (weakref.ref(array), stack, program.number, others)
                if len(self._keys) > _SAME_KEY_CALLS:
                    self._keys.popitem(last=False)

    def _on_read(self, array, seconds):
        stack = _lint_jax.users_stack()
        read = self.reads.get(stack)
        if read is None:
            read = self.reads[stack] = Read(stack)
        read.count += 1
        read.seconds += seconds
        read.bytes += getattr(array, "nbytes", 0) or 0
