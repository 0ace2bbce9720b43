"""Tokamak: a fusing tensor compiler.

JAX programs do not need to import it: with the package installed, `JAX_PLATFORMS=tokamak python program.py` runs them.

    import tokamak
    with tokamak.debug():      # reports on each jit inside
        jax.jit(f)(x)
    print(tokamak.explain(f, x))          # its kernels, their costs and source lines
    print(tokamak.lint(f, x))             # lines that cost more than they need
    tokamak.assert_fused(f, x, kernels=1) # in a test: also assert_memory_below, assert_no_recompile, assert_no_host_steps
    g = tokamak.graph(f, x)               # its program and plan as objects to look at and to edit
    with tokamak.require_fused(): ...     # in a function: one kernel, or an error with the reason
    @tokamak.rule(pattern)     # a rewrite rule: the decorated function replaces the pattern where that is faster
    k = tokamak.kernel(c=SOURCE, name="saxpy", ...)    # an op in C or CUDA C++
    tokamak.options()          # the options of jax.jit(f, compiler_options={...})
"""

import pathlib

from tokamak import _library
from tokamak._asserts import (
    HostStepError,
    MemoryLimitError,
    NotFusedError,
    RecompileError,
    assert_fused,
    assert_memory_below,
    assert_no_host_steps,
    assert_no_recompile,
)
from tokamak._debug import debug
from tokamak._explain import ExplainError, explain
from tokamak._graph import Graph, graph
from tokamak._graph_objects import GraphError
from tokamak._kernel import Kernel, KernelError, kernel
from tokamak._lint import lint
from tokamak._lint_result import Lint, Lints, LintWarning
from tokamak._pins import fuse, never_fuse, require_fused
from tokamak._policy import (
    Move, PluginError, Step, fusion_policy, load_plugin, order_policy, ordered_by, plugins, policy, remove_policy,
)  # fmt: skip
from tokamak._rules import RuleError, RuleWarning, rule, rules

__all__ = ["ExplainError", "Graph", "GraphError", "HostStepError", "Kernel", "KernelError", "Lint", "LintWarning",
           "Lints", "MemoryLimitError", "Move", "NotFusedError", "PluginError", "RecompileError", "RuleError",
           "RuleWarning", "Step", "assert_fused", "assert_memory_below", "assert_no_host_steps", "assert_no_recompile",
           "build_info", "debug", "devices", "explain", "fuse", "fusion_policy", "graph", "include_dir", "kernel",
           "library_path", "lint", "load_plugin", "never_fuse", "options", "order_policy", "ordered_by", "plugins",
           "policy", "remove_policy", "require_fused", "rule", "rules"]  # fmt: skip


def __getattr__(name):
    if name == "__version__":
        return _library.text("tok_version") or "0"
    raise AttributeError(f"module 'tokamak' has no attribute {name!r}")


def library_path():
    """The path of libtokamak.so."""
    return _library.path()


def include_dir():
    """The folder with tokamak/tokamak_plugin.h, the header of compiler plugins (docs/plugins.md)."""
    here = pathlib.Path(__file__).resolve().parent
    return str(here / "include" if (here / "include").is_dir() else here.parent.parent / "include")


def build_info():
    """How the library was built: a dict with version, backends and so on."""
    return _library.query_json("tok_build_info", {})


def devices():
    """The devices available to the library, as dicts. If there are none, the platform is not registered with JAX."""
    return _library.query_json("tok_devices", {"devices": []})["devices"]


def options():
    """The options of `jax.jit(f, compiler_options={...})`: a list of dicts with name, type, default and meaning."""
    return _library.query_json("tok_options", [])
