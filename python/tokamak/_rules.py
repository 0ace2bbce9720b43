"""User rewrite rules: @tokamak.rule(pattern). docs/extending.md is the guide."""

import contextlib
import ctypes
import functools
import inspect
import json
import math
import numbers
import re
import sys
import threading
import warnings

from tokamak import _library

# The shapes that all arguments of a rule without examples get, one after the other; those at which a function cannot be
# traced are left out. Small, so that the check at registration is quick.
_SHAPES = ((4, 8), (8,), (), (2, 3, 4), (6, 6))


class RuleError(ValueError):
    """A rule that was not registered; the text has the reason, `code` the error (TK3008 ...)."""

    def __init__(self, text, code=""):
        super().__init__(text)
        self.code = code


class RuleWarning(UserWarning):
    """A program was compiled without a rule, for the reason in the text."""


def _api():
    if not _library.has("tok_rule_register"):
        raise NotImplementedError("tokamak.rule: this libtokamak.so is older than the package")
    return _library.load()


class Value:
    """An array of an instance: what a variable stands for, or the result."""

    def __init__(self, name, facts):
        self.name = name
        self.type = facts.get("type")  # as in HLO: "f32"
        self.shape = tuple(facts.get("shape", ()))
        self.op = facts["op"]  # of the instruction that computes it: "add"
        self.label = facts["label"]
        self.users = facts["users"]  # how many instructions use it
        self.sources = facts["sources"]  # ["train.py:12"]

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return math.prod(self.shape)

    def __repr__(self):
        return f"{self.name}: {self.type}[{','.join(map(str, self.shape))}] from {self.op}"


class Match:
    """An instance for `when` to decide on. The variables are attributes (`match.x.shape`), items by name or number, and the list
    `variables`; `result` and `results` are what the rule would replace."""

    def __init__(self, names, facts):
        self.rule = facts["rule"]
        self.computation = facts["computation"]
        self.variables = [Value(name, value) for name, value in zip(names, facts["variables"])]
        self.results = [Value("result", value) for value in facts["results"]]

    @property
    def result(self):
        return self.results[0]

    def __getitem__(self, key):
        if isinstance(key, int):
            return self.variables[key]
        for value in self.variables:
            if value.name == key:
                return value
        raise KeyError(key)

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the rule has no variable {name!r}") from None


def _is_shape(value):
    return isinstance(value, (tuple, list)) and all(type(n) is int for n in value)


def _is_argument(value):
    return _is_shape(value) or hasattr(value, "shape") or isinstance(value, (numbers.Number, bool))


def _spec(value):
    """A shape (of f32), an array, a jax.ShapeDtypeStruct or a number, as a jax.ShapeDtypeStruct."""
    import jax
    import jax.numpy as jnp

    if _is_shape(value):
        return jax.ShapeDtypeStruct(tuple(value), jnp.float32)
    if not _is_argument(value):
        raise TypeError(f"tokamak.rule: an example has arrays, shapes or numbers, not {type(value).__name__}")
    if hasattr(value, "dtype"):
        return jax.ShapeDtypeStruct(value.shape, value.dtype)
    return jax.ShapeDtypeStruct((), jnp.asarray(value).dtype)


def _examples_of(examples, count):
    """A list of tuples of jax.ShapeDtypeStruct."""
    examples = list(examples)
    if len(examples) == count and all(_is_argument(e) for e in examples):
        examples = [examples]  # one example
    return [tuple(_spec(v) for v in ([e] if _is_argument(e) else e)) for e in examples]


def _parameters_of(function, examples):
    """The names of the function's parameters."""
    names = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            if parameter.default is parameter.empty:
                names.append(parameter.name)
        elif parameter.kind == parameter.VAR_POSITIONAL and examples is not None:
            raise TypeError("tokamak.rule: a pattern with *args has no fixed number of variables")
    if not names:
        raise TypeError("tokamak.rule: the pattern has no parameters, so the rule has no variables")
    return names


def _text_of(function, specs):
    import jax

    return jax.jit(function, keep_unused=True).lower(*specs).as_text().encode()


def _bytes_of(function, specs):
    """The form in which jitted programs reach the library: JAX writes out the ops of its dialect CHLO (erf, sinh ...), which
    are ops in the text of `tokamak.explain`."""
    import jax
    import jax.export

    jitted = jax.jit(function, keep_unused=True)
    calls = set(re.findall(r"custom_call @([\w.]+)", jitted.lower(*specs).as_text()))
    unchecked = [jax.export.DisabledSafetyCheck.custom_call(call) for call in calls]
    return jax.export.export(jitted, disabled_checks=unchecked)(*specs).mlir_module_serialized


def _pair(pattern, replacement, specs, form=_text_of):
    texts = form(pattern, specs), form(replacement, specs)
    return _library.TokRuleExample(texts[0], len(texts[0]), texts[1], len(texts[1]))


class Rule:
    """A registered rule. Calling it calls the replacement."""

    def __init__(self, pattern, replacement, when, options, examples):
        self.pattern, self.replacement, self.when = pattern, replacement, when
        self.name = options["name"]
        self.is_active = False
        self._names = _parameters_of(pattern, examples)
        functools.update_wrapper(self, replacement, updated=())
        self._handles = []  # one for each form of programs in which the pattern looks different
        self._pairs = {}  # traced at shapes of programs
        pairs, specs = self._traced(examples)
        self._register(pairs, _text_of, options)
        if any(b" chlo." in pair.pattern for pair in pairs):
            try:
                self._register([_pair(pattern, replacement, one, _bytes_of) for one in specs], _bytes_of, options)
            except BaseException:
                self._end()
                raise
        self._set_active(True)

    def __call__(self, *args, **kwargs):
        return self.replacement(*args, **kwargs)

    def __repr__(self):
        return f"<tokamak rule {self.name}{'' if self.is_active else ' (removed)'}>"

    def remove(self):
        """Programs that are compiled from now on do not use the rule."""
        if self.is_active:
            self._end()
            self._set_active(False)

    def restore(self):
        """Undoes remove()."""
        if not self.is_active:
            for handle in self._handles:
                _api().tok_rule_restore(handle)
            self._set_active(True)

    def _end(self):
        for handle in self._handles:
            _api().tok_rule_remove(handle)

    def _set_active(self, is_active):
        self.is_active = is_active
        (_ACTIVE.append if is_active else _ACTIVE.remove)(self)
        _change_global(tuple(id(rule) for rule in _ACTIVE))

    def _traced(self, examples):
        """The examples, and the types of their arguments."""
        if examples is not None:
            specs = _examples_of(examples, len(self._names))
            return [_pair(self.pattern, self.replacement, one) for one in specs], specs
        pairs, specs, failure = [], [], None
        for shape in _SHAPES:
            one = [_spec(shape)] * len(self._names)
            try:
                pairs.append(_pair(self.pattern, self.replacement, one))
                specs.append(one)
            except Exception as error:  # whatever a user's function raises at a shape that it is not for
                failure = error
        if not pairs:
            raise RuleError(
                f"rule {self.name}: cannot be traced with arguments of one shape; pass examples=[(shape, shape ...)]: {failure}"
            ) from failure
        return pairs, specs

    def _register(self, pairs, form, options):
        library = _api()
        low, high = options["domain"] or (None, None)
        trace = _library.RULE_FN(functools.partial(self._trace, form))
        when = _library.RULE_FN(self._when) if self.when else _library.RULE_FN()
        warn = _library.WARN_FN(self._warn)
        _KEPT.append((when, trace, warn))  # another thread may be compiling with the rule when it is removed
        handle = ctypes.c_void_p()
        rule = _library.TokRule(
            ctypes.sizeof(_library.TokRule),
            self.name.encode(),
            options["source"].encode(),
            options["priority"],
            int(not options["when_cheaper"]),
            -1.0 if options["tolerance"] is None else float(options["tolerance"]),
            int(options["nonfinite"]),
            -math.inf if low is None else low,
            math.inf if high is None else high,
            (_library.TokRuleExample * len(pairs))(*pairs),
            len(pairs),
            when,
            trace,
            warn,
            None,
        )
        error = library.tok_rule_register(ctypes.byref(rule), ctypes.byref(handle))
        code = library.tok_error_code(error).decode() if error else ""
        _library.check(error, lambda text: RuleError(text, code))
        self._handles.append(handle)

    def _when(self, call, facts, _):
        try:
            return int(bool(self.when(Match(self._names, json.loads(facts)))))
        except BaseException as error:  # must not leave the callback
            _api().tok_rule_call_fail(call, f"{type(error).__name__}: {error}".encode())
            return -1

    def _trace(self, form, call, variables, _):
        import jax

        from tokamak import _host_calls

        key = (form, variables, jax.config.jax_enable_x64, jax.config.jax_default_matmul_precision)
        if key not in self._pairs:
            try:
                specs = [jax.ShapeDtypeStruct(tuple(v["shape"]), _host_calls._dtype(v["type"])) for v in json.loads(variables)]
                self._pairs[key] = _pair(self.pattern, self.replacement, specs, form)
            except BaseException:  # the functions are not for these shapes
                self._pairs[key] = None
        pair = self._pairs[key]
        if pair is None:
            return 0
        _api().tok_rule_call_set(call, ctypes.byref(pair))
        return 1

    def _warn(self, code, text, _):
        warnings.warn(text.decode(), RuleWarning, stacklevel=2)


_SCOPE = threading.RLock()
_ACTIVE = []  # the rules of the process
_KEPT = []  # functions that the library may call


@functools.cache
def _context():
    """Part of the key of JAX's own caches, so that a change of the rules compiles again. None in versions without it."""
    import jax

    return jax.make_user_context(()) if hasattr(jax, "make_user_context") else None


def _change_global(key):
    import jax

    context = _context()
    if context is not None and hasattr(context, "set_global"):
        context.set_global(key)
    else:
        jax.clear_caches()


def rule(pattern, *, when=None, priority=0, tolerance=None, examples=None, name=None, when_cheaper=True, nonfinite=False,
         domain=None):  # fmt: skip
    """A rewrite rule: `@tokamak.rule(pattern)` decorates the replacement, a JAX function of the same arguments. Programs that
    are compiled from now on get the replacement where they compute the pattern, if that is predicted to be faster.

        @tokamak.rule(lambda x: x / (1 + jnp.exp(-x)))
        def silu(x):
            return jax.nn.silu(x)

    when: a function of a Match that returns whether an instance may be replaced.
    priority: rules with a greater one are tried first.
    tolerance: the allowed |pattern - replacement| / (1 + |pattern|); by default a few units in the last place, or what the
        pattern itself loses by rounding. Integers are compared exactly.
    examples: arguments to trace with, [(x, y), ...]: arrays, jax.ShapeDtypeStruct, or shapes of f32. They also fix the element
        types for which the rule holds.
    when_cheaper: False to apply the rule always.
    nonfinite: True if the rule also holds for infinities and NaN.
    domain: (low, high), the real inputs for which the rule holds; None: no bound.

    Raises RuleError if the two functions differ in shapes, or in values on drawn inputs. Returns a Rule."""

    caller = sys._getframe(1)
    source = f"{caller.f_code.co_filename}:{caller.f_lineno}"

    def register(replacement):
        options = {
            "source": source,
            "name": name or getattr(replacement, "__name__", "rule").replace("<lambda>", "rule"),
            "priority": priority,
            "tolerance": tolerance,
            "when_cheaper": when_cheaper,
            "nonfinite": nonfinite,
            "domain": domain,
        }
        return Rule(pattern, replacement, when, options, examples)

    return register


@contextlib.contextmanager
def rules(*chosen):
    """`with tokamak.rules(a, b):` programs that are compiled inside use these rules and no others. For the whole process,
    because JAX compiles on threads of its own: one thread at a time is inside."""
    library = _api()
    handles = [handle for rule in chosen for handle in rule._handles]
    context = _context()
    with _SCOPE:
        yield from _inside(library, handles, context, chosen)


def _inside(library, handles, context, chosen):
    library.tok_rules_enter((ctypes.c_void_p * len(handles))(*handles), len(handles))
    try:
        if context is None:
            import jax

            jax.clear_caches()
            yield
            jax.clear_caches()
        else:
            with context(("scope", *(id(r) for r in chosen))):
                yield
    finally:
        library.tok_rules_leave()
