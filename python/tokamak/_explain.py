"""tokamak.explain(f, *args): the compile report of a function."""

import ctypes
import json
from html import escape

from tokamak import _library


class ExplainError(ValueError):
    """An invalid program or request; the text has the reason."""


def _loaded(function):
    library = _library.load()
    if not _library.has(function):
        raise NotImplementedError("tokamak.explain: this libtokamak.so is older than the package")
    return library


def option_texts(given):
    """Options of a user as the library reads them: {name: text}."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in (given or {}).items()}


def option_structs(given):
    """Options as an array of tok_option."""
    texts = option_texts(given)
    return (_library.TokOption * len(texts))(*((name.encode(), value.encode()) for name, value in texts.items()))


def traced(f, args, kwargs):
    """`f`, a function or the result of jax.jit, traced with these arguments."""
    import jax

    return (f if hasattr(f, "trace") else jax.jit(f)).trace(*args, **kwargs)


def frame(page, title):
    """A page inside a page of a notebook."""
    look = f'style="width: 100%; height: 720px; border: 0" title="{title}"'
    return f'<iframe sandbox="allow-scripts" {look} srcdoc="{escape(page)}"></iframe>'


def written(text, file):
    """Writes a text to `file`, or returns it."""
    if file is None:
        return text
    with open(file, "w", encoding="utf-8") as out:
        out.write(text)
    return None


class Explanation:
    """The compile report of a program. `print(e)` shows it; notebooks show it as a page for browsers, which
    `e.html(file)` writes. `e.data` is the whole report as a dict; `e.kernel(name)` is a kernel's IR and code, `e.dot()`
    a graph for Graphviz, `e.lints` a list of lines that cost more than necessary."""

    def __init__(self, program, name, options):
        self._program, self._name, self._options = program, name, options
        self._data = None

    def _module(self, library):
        module = ctypes.c_void_p()
        error = library.tok_module_read(self._program, len(self._program), self._name.encode(), ctypes.byref(module))
        _library.check(error, ExplainError)
        return module

    def _ask(self, **more):
        library = _loaded("tok_module_explain")
        options = option_structs({**self._options, **more})
        text, module = ctypes.c_char_p(), self._module(library)
        try:
            _library.check(library.tok_module_explain(module, options, len(options), ctypes.byref(text)), ExplainError)
            return text.value.decode()
        finally:
            library.tok_module_free(module)

    @property
    def data(self):
        if self._data is None:
            self._data = json.loads(self._ask(json="true"))
        return self._data

    @property
    def lints(self):
        return json.loads(self._ask(json="true", lints="true"))["lints"]

    def kernel(self, name):
        """The kernel of this name (or step number, from 1) as kernel IR and as LLVM IR or CUDA C++."""
        return self._ask(kernel=str(name))

    def dot(self):
        return self._ask(dot="true")

    def html(self, file=None):
        """The report as an HTML page that needs no other file and no network: graph, timeline, memory, kernels, source
        lines, decisions. Writes it to `file`, or returns it."""
        return written(self._ask(html="true"), file)

    def trace(self, file=None):
        """The timeline as a Chrome trace, which ui.perfetto.dev opens: steps and temporary memory, predicted and, with
        `tokamak_measure`, measured; the passes of the compiler. Writes it to `file`, or returns it."""
        return written(self._ask(trace="true"), file)

    def diff(self, other):
        """Compares the steps of this program with those of another one, or of the same under other options: a Diff."""
        return Diff(self, other)

    def _repr_html_(self):
        if "," in self._options["target"]:
            return None  # a comparison of targets is text
        return frame(self.html(), "Compile report")

    def decisions(self):
        """The table followed by every decision: what was fused, what was not, why, and what would change it."""
        return self._ask(decisions="true")

    def __str__(self):
        return self._ask()

    __repr__ = __str__


def _names(a, b):
    """Names that tell two programs apart: those of the functions, else the options that differ, else numbers."""
    if a._name != b._name:
        return a._name, b._name
    differ = sorted(name for name in {**a._options, **b._options} if a._options.get(name) != b._options.get(name))
    if not differ:
        return f"{a._name} (1)", f"{b._name} (2)"
    return tuple(", ".join(f"{name}={one._options.get(name, 'default')}" for name in differ) for one in (a, b))


class Diff:
    """The steps that only one of two compilations has, and their cost. `print(d)` shows them; notebooks show both plans
    side by side, as the page that `d.html(file)` writes. `d.data` is a dict."""

    def __init__(self, a, b):
        if not isinstance(b, Explanation):
            raise TypeError(f"tokamak: diff takes the result of tokamak.explain, not {type(b).__name__}")
        self._a, self._b, self._names = a, b, _names(a, b)

    def _ask(self, **more):
        library = _loaded("tok_module_explain_diff")
        sides, modules, text = [], [], ctypes.c_char_p()
        try:
            for one, name in zip((self._a, self._b), self._names):
                modules.append(one._module(library))
                options = option_structs({**one._options, "name": name, **more})
                sides.append(_library.TokDiffSide(modules[-1], options, len(options)))
            _library.check(library.tok_module_explain_diff(*map(ctypes.byref, sides), ctypes.byref(text)), ExplainError)
            return text.value.decode()
        finally:
            for module in modules:
                library.tok_module_free(module)

    @property
    def data(self):
        return json.loads(self._ask(json="true"))

    def html(self, file=None):
        """Both plans side by side, as an HTML page that needs no other file. Writes it to `file`, or returns it."""
        return written(self._ask(html="true"), file)

    def _repr_html_(self):
        return frame(self.html(), "Comparison of two plans")

    def __str__(self):
        return self._ask()

    __repr__ = __str__


def explain(f, *args, tokamak_target="host", tokamak_measure=False, tokamak_options=None, **kwargs):
    """Explains how `f(*args, **kwargs)` is compiled: an Explanation, which prints as `tokamak explain` does. `f` is a
    function or the result of jax.jit; it is traced and lowered, not run (`tokamak_measure` runs its kernels individually).

    tokamak_target: "host", "h200", or "host,h200" to compare the two.
    tokamak_options: the options of jax.jit(f, compiler_options=...)."""
    import jax

    lowered = (f if hasattr(f, "lower") else jax.jit(f)).lower(*args, **kwargs)
    options = option_texts({"target": tokamak_target, "measure": bool(tokamak_measure), **(tokamak_options or {})})
    explanation = Explanation(lowered.as_text(debug_info=True).encode(), getattr(f, "__name__", "f"), options)
    explanation.data  # raises here if the request is invalid
    return explanation
