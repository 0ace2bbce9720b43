"""tokamak.explain(f, *args): what becomes of a function."""

import ctypes
import json

from tokamak import _library


class ExplainError(ValueError):
    """A program, or a question about one, that has no answer; the text says why."""


def _raised(library, error):
    text = library.tok_error_text(error).decode()
    library.tok_error_free(error)
    raise ExplainError(text)


class Explanation:
    """What the library tells of a program. `print(e)` shows it; `e.data` is all of it as a dict; `e.kernel(name)` is
    a kernel's form and code, `e.dot()` a graph for Graphviz, `e.lints` remarks on lines that cost more than they need."""

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
        """The kernel of this name (or number, from 1, as steps run) as kernel form and as LLVM IR or CUDA C++."""
        return self._ask(kernel=str(name))

    def dot(self):
        return self._ask(dot="true")

    def decisions(self):
        """The table with every choice below it: what was fused, what was not, why, and what would change that."""
        return self._ask(decisions="true")

    def __str__(self):
        return self._ask()

    __repr__ = __str__


def explain(f, *args, tokamak_target="host", tokamak_measure=False, tokamak_options=None, **kwargs):
    """What becomes of `f(*args, **kwargs)`: an Explanation, which prints as `tokamak explain` does. `f` is a function, or
    what jax.jit gives; it is traced and lowered, not run (kernels are, by themselves, with `tokamak_measure`).

    tokamak_target: "host", "h200", or "host,h200", which tells where it is faster.
    tokamak_options: what jax.jit(f, compiler_options=...) takes."""
    import jax

    lowered = (f if hasattr(f, "lower") else jax.jit(f)).lower(*args, **kwargs)
    options = {"target": tokamak_target, "measure": str(bool(tokamak_measure)).lower()}
    for name, value in (tokamak_options or {}).items():
        options[name] = str(value).lower() if isinstance(value, bool) else str(value)
    explanation = Explanation(lowered.as_text(debug_info=True).encode(), getattr(f, "__name__", "f"), options)
    explanation.data  # what is wrong with the question is told here
    return explanation
