"""tokamak.explain(f, *args): the compile report of a function."""

import ctypes
import json
from html import escape

from tokamak import _library


class ExplainError(ValueError):
    """An invalid program or request; the text has the reason."""


def _raised(library, error):
    text = library.tok_error_text(error).decode()
    library.tok_error_free(error)
    raise ExplainError(text)


class Explanation:
    """The compile report of a program. `print(e)` shows it; notebooks show it as a page for browsers, which
    `e.html(file)` writes. `e.data` is the whole report as a dict; `e.kernel(name)` is a kernel's IR and code, `e.dot()`
    a graph for Graphviz, `e.lints` a list of lines that cost more than necessary."""

    def __init__(self, program, name, options):
        self._program, self._name, self._options = program, name, options
        self._data = None

    def _ask(self, **more):
        library = _library.load()
        if not _library.has("tok_module_explain"):
            raise NotImplementedError("tokamak.explain: this libtokamak.so is older than the package")
        given = {**self._options, **more}
        options = (_library.TokOption * len(given))(*((n.encode(), v.encode()) for n, v in given.items()))
        module, text = ctypes.c_void_p(), ctypes.c_char_p()
        error = library.tok_module_read(self._program, len(self._program), self._name.encode(), ctypes.byref(module))
        if error:
            _raised(library, error)
        try:
            error = library.tok_module_explain(module, options, len(options), ctypes.byref(text))
            if error:
                _raised(library, error)
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
        page = self._ask(html="true")
        if file is None:
            return page
        with open(file, "w", encoding="utf-8") as out:
            out.write(page)
        return None

    def _repr_html_(self):
        if "," in self._options["target"]:
            return None  # a comparison of targets is text
        frame = 'style="width: 100%; height: 720px; border: 0" title="Compile report"'
        return f'<iframe sandbox="allow-scripts" {frame} srcdoc="{escape(self.html())}"></iframe>'

    def decisions(self):
        """The table followed by every decision: what was fused, what was not, why, and what would change it."""
        return self._ask(decisions="true")

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
    options = {"target": tokamak_target, "measure": str(bool(tokamak_measure)).lower()}
    for name, value in (tokamak_options or {}).items():
        options[name] = str(value).lower() if isinstance(value, bool) else str(value)
    explanation = Explanation(lowered.as_text(debug_info=True).encode(), getattr(f, "__name__", "f"), options)
    explanation.data  # raises here if the request is invalid
    return explanation
