"""Custom kernels: one op whose code the user writes in C, C++ or CUDA C++ (docs/custom_kernels.md).

A call is a custom call that carries the sources and the launch as one JSON text, so a lowered program runs without Python."""

import functools
import inspect
import json
import pathlib
import re


class KernelError(ValueError):
    """A kernel is declared or called wrongly. The message names the kernel."""


def kernel(*, name, c=None, cpp=None, cuda=None, out=None, inputs=None, outputs=None, blocks=1, grid=None, hooks=False,
           loads=1.0, aliases=None, defines=None, c_options=(), cuda_options=(), vmap="loop", vjp=None,
           reference=None):  # fmt: skip
    """Declares a kernel and returns a function of JAX arrays, for jit, vmap, grad, scan and plain calls.

    name:       of the kernel; its entry point has this name
    c, cpp:     source for CPUs, in C or C++: a text, or a pathlib.Path
    cuda:       source for GPUs, in CUDA C++
    out:        jax.ShapeDtypeStruct, a pytree of them, or a function of the inputs' ShapeDtypeStructs that returns one;
                None: that of the first input
    inputs:     names of the inputs, or a dict from name to type: "f32[n, k]", "f32|bf16[...]". Default: the parameters of `out`
    outputs:    names of the outputs. Default: out, or out0, out1 ...
    blocks:     CPU: calls of the entry point, which run in parallel; a number, or a function of the ShapeDtypeStructs
    grid:       GPU: (blocks, threads) or (blocks, threads, shared_bytes), or a function that returns it. Blocks and threads are
                numbers, or tuples of up to three
    hooks:      True, or {"load": [0], "store": [0]}: arrays that are accessed only through TOK_LOAD_i and TOK_STORE_j,
                so that elementwise ops before and after the kernel can be computed in it
    loads:      how often TOK_LOAD_i reads an element, on average
    aliases:    {input: output}: outputs that start as their input, in its memory if possible
    defines:    a dict of macros, or a function of the ShapeDtypeStructs that returns one
    c_options, cuda_options: options of the compilers, after Tokamak's
    vmap:       "loop", "batched", or rule(axis_size, in_batched, *args) -> (outputs, out_batched)
    vjp:        bwd(args, out, cotangent) -> one cotangent per input, or (fwd, bwd) as in jax.custom_vjp
    reference:  a JAX function with the same results, for other platforms and for check()
    """
    sources = _Sources(inspect.currentframe().f_back.f_code.co_filename, c, cpp, cuda, c_options, cuda_options)
    return Kernel(name, sources, out, inputs, outputs, blocks, grid, hooks, loads, aliases, defines, vmap, vjp, reference)


# Element types by the names of this page; the first of each is HLO's.
_TYPES = {
    "bool": "bool", "pred": "bool", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "c64": "complex64", "c128": "complex128",
    **{f"s{bits}": f"int{bits}" for bits in (8, 16, 32, 64)}, **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}  # fmt: skip


class _InputType:
    """The type of an input: element types and dimensions. "f32|bf16[n, 4]": names are sizes that agree between inputs."""

    def __init__(self, kernel_name, name, text):
        match = re.fullmatch(r"([\w|]+)(?:\[(.*)\])?", text.replace(" ", ""))
        if match is None:
            raise KernelError(f"kernel '{kernel_name}': input '{name}': '{text}' is not a type such as f32[n, 4]")
        self.text, self.name = text, name
        self.dtypes = None if match[1] == "any" else [_TYPES.get(word, word) for word in match[1].split("|")]
        dims = match[2]
        self.dims = None if dims is None or dims == "..." else [dim for dim in dims.split(",") if dim]

    def why_not(self, aval, sizes, extra):
        """What is wrong with an argument, or None. `sizes`: of the named dimensions so far. `extra`: leading batch dimensions."""
        if self.dtypes is not None and str(aval.dtype) not in self.dtypes:
            return f"its elements are {aval.dtype}"
        if self.dims is None:
            return None
        shape = aval.shape[extra:]
        if len(shape) != len(self.dims):
            return f"it has {len(shape)} dimensions"
        for dim, size in zip(self.dims, shape):
            wanted = int(dim) if dim.isdigit() else sizes.setdefault(dim, size)
            if dim != "?" and wanted != size:
                return f"dimension {dim} is {size}, not {wanted}"
        return None


class _Sources:
    """The sources of a kernel, and the file whose texts they are."""

    def __init__(self, caller, c, cpp, cuda, c_options, cuda_options):
        self.caller, self.c, self.cpp, self.cuda = caller, c, cpp, cuda
        self.options = {"c_options": list(c_options), "cuda_options": list(cuda_options)}

    def describe(self, fail):
        """Their part of the description."""
        if self.c is not None and self.cpp is not None:
            fail("pass c= or cpp=, not both")
        if self.c is None and self.cpp is None and self.cuda is None:
            fail("it has no source: pass c=, cpp= or cuda=")
        made = {"language": "c++" if self.cpp is not None else "c", **{key: value for key, value in self.options.items() if value}}
        for key, source in (("c", self.cpp if self.cpp is not None else self.c), ("cuda", self.cuda)):
            if source is None:
                continue
            if isinstance(source, pathlib.PurePath):
                made[key], at = pathlib.Path(source).read_text(), [str(source), 1]
            elif isinstance(source, str):
                made[key], at = source, _place_of(source, self.caller)
            else:
                fail(f"a source is a text or a pathlib.Path, not {type(source).__name__}")
            if not made[key].strip():
                fail(f"the source {key}= is empty")
            if at is not None:
                made[key + "_at"] = at
        return made


class Kernel:
    """A declared kernel: a function of JAX arrays. Made by tokamak.kernel()."""

    def __init__(self, name, sources, out, inputs, outputs, blocks, grid, hooks, loads, aliases, defines, vmap, vjp, reference):
        if not (isinstance(name, str) and name.isidentifier() and name.isascii()):
            raise KernelError(f"tokamak.kernel: name={name!r} is not an identifier of C")
        self.name, self._out, self._blocks, self._grid, self._defines = name, out, blocks, grid, defines
        self._sources = sources.describe(self._fail)
        if sources.cuda is not None and grid is None:
            self._fail("cuda= needs grid=(blocks, threads)")
        self._types = None
        if isinstance(inputs, dict):
            self._types = [_InputType(name, key, text) for key, text in inputs.items()]
        self._inputs = list(inputs) if inputs is not None else self._parameters_of(out)
        self._outputs, self._hooks, self._loads = outputs, hooks, loads
        self._aliases = {int(i): int(j) for i, j in (aliases or {}).items()}
        if not (vmap in ("loop", "batched") or callable(vmap)):
            self._fail(f"vmap={vmap!r} is neither 'loop', 'batched' nor a function")
        self.vmap, self.vjp, self.reference = vmap, vjp, reference
        self.__name__ = name
        self._function = self._differentiable()

    def __call__(self, *args):
        import jax.numpy as jnp

        return self._function(*[jnp.asarray(arg) for arg in args])

    def __repr__(self):
        return f"<tokamak.kernel {self.name}({', '.join(self._inputs or ['...'])})>"

    def check(self, *args, rtol=1e-5, atol=1e-6):
        """Compares the kernel with its reference on these arguments. Raises AssertionError, else returns the largest difference."""
        import jax
        import numpy as np

        if self.reference is None:
            self._fail("check() needs reference=")
        got = jax.tree.leaves(self(*args))
        expected = jax.tree.leaves(jax.jit(self.reference)(*args))
        if len(got) != len(expected):
            raise AssertionError(f"kernel '{self.name}' has {len(got)} outputs, its reference {len(expected)}")
        largest = 0.0
        for number, (x, y) in enumerate(zip(got, expected)):
            if x.shape != y.shape or x.dtype != y.dtype:
                raise AssertionError(f"kernel '{self.name}': output {number} is {x.dtype}{list(x.shape)}, that of its "
                                     f"reference {y.dtype}{list(y.shape)}")  # fmt: skip
            wide = np.complex128 if np.iscomplexobj(x) else np.float64
            np.testing.assert_allclose(np.asarray(x).astype(wide), np.asarray(y).astype(wide), rtol=rtol, atol=atol,
                                       err_msg=f"kernel '{self.name}': output {number}")  # fmt: skip
            if x.size:
                largest = max(largest, float(np.nanmax(np.abs(np.asarray(x).astype(wide) - np.asarray(y).astype(wide)), initial=0)))
        return largest

    # ---- declaration

    def _fail(self, why):
        raise KernelError(f"kernel '{self.name}': {why}")

    @staticmethod
    def _parameters_of(out):
        """The names of the inputs, or None if `out` does not name them."""
        if not callable(out):
            return None
        kinds = [p.kind for p in inspect.signature(out).parameters.values()]
        if any(kind not in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for kind in kinds):
            return None
        return list(inspect.signature(out).parameters)

    def _differentiable(self):
        """The kernel with its derivative."""
        import jax

        def call(*args):
            return self._bind(args, 0)

        call.__name__ = self.name
        if self.vjp is None:
            return call
        with_vjp = jax.custom_vjp(call)
        if callable(self.vjp):

            def fwd(*args):
                result = with_vjp(*args)  # differentiable again
                return result, (args, result)

            def bwd(kept, cotangent):
                grads = self.vjp(kept[0], kept[1], cotangent)
                return tuple(grads) if isinstance(grads, (tuple, list)) else (grads,)

            with_vjp.defvjp(fwd, bwd)
        else:
            with_vjp.defvjp(*self.vjp)
        return with_vjp

    # ---- calls

    def _avals(self, args):
        import jax

        return [jax.ShapeDtypeStruct(arg.shape, arg.dtype) for arg in args]

    def _check_inputs(self, avals, batch):
        if self._inputs is not None and len(avals) != len(self._inputs):
            self._fail(f"it takes {len(self._inputs)} arguments ({', '.join(self._inputs)}), not {len(avals)}")
        sizes = {}
        for number, wanted in enumerate(self._types or []):
            why = wanted.why_not(avals[number], sizes, batch)
            if why is not None:
                self._fail(f"argument {number} '{wanted.name}' is not {wanted.text}: {why}")

    def _out_tree(self, avals):
        import jax

        out = self._out
        if out is None:
            if not avals:
                self._fail("a kernel without inputs needs out=")
            out = avals[0]
        elif callable(out):
            out = out(*avals)
        leaves, tree = jax.tree.flatten(out)
        for leaf in leaves:
            if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
                self._fail(f"out= has {leaf!r} where a jax.ShapeDtypeStruct is expected")
        if not leaves:
            self._fail("out= has no array")
        return [jax.ShapeDtypeStruct(tuple(leaf.shape), leaf.dtype) for leaf in leaves], tree

    def _bind(self, args, batch):
        """The call as an op. `batch`: leading batch dimensions of all arguments."""
        import jax

        from tokamak import _jax  # it loads NumPy, which `import tokamak` does not need

        avals = self._avals(args)
        self._check_inputs(avals, batch)
        outs, tree = self._out_tree(avals)
        for i, j in self._aliases.items():
            if i >= len(avals) or j >= len(outs):
                self._fail(f"aliases={self._aliases} names an input or output that does not exist")
            if (avals[i].shape, avals[i].dtype) != (outs[j].shape, outs[j].dtype):
                self._fail(f"aliases={self._aliases}: input {i} is {_text(avals[i])}, output {j} is {_text(outs[j])}")
        results = _jax.kernel_primitive().bind(*args, kernel=self, outs=tuple(outs), batch=batch)
        return jax.tree.unflatten(tree, results)

    def describe(self, avals, outs):
        """The attribute of the call: JSON."""
        inputs = self._inputs or [f"x{i}" for i in range(len(avals))]
        outputs = self._outputs or (["out"] if len(outs) == 1 else [f"out{j}" for j in range(len(outs))])
        blocks = self._blocks(*avals) if callable(self._blocks) else self._blocks
        made = {**self._sources, "name": self.name, "inputs": list(inputs), "outputs": list(outputs), "blocks": int(blocks)}
        defines = self._defines(*avals) if callable(self._defines) else self._defines
        if defines:
            made["defines"] = {key: _macro(value) for key, value in defines.items()}
        if self._hooks:
            hooks = self._hooks if isinstance(self._hooks, dict) else {}
            made["load_hooks"] = list(hooks.get("load", range(len(avals)) if self._hooks is True else []))
            made["store_hooks"] = list(hooks.get("store", range(len(outs)) if self._hooks is True else []))
            made["loads"] = float(self._loads)
        if self._grid is not None:
            grid = self._grid(*avals) if callable(self._grid) else self._grid
            if not (isinstance(grid, (tuple, list)) and 2 <= len(grid) <= 3):
                self._fail(f"grid= gives {grid!r}, not (blocks, threads) or (blocks, threads, shared_bytes)")
            made["grid"], made["threads"] = _sizes(grid[0]), _sizes(grid[1])
            made["shared"] = int(grid[2]) if len(grid) == 3 else 0
        return json.dumps(made)

    @property
    def aliases(self):
        return dict(self._aliases)

    def batched(self, size, args, dims, batch):
        """vmap: the results, with the batch dimension first, and whether each has one."""
        import jax
        import jax.numpy as jnp

        mapped = [dim is not None for dim in dims]
        args = [arg if dim is None else jnp.moveaxis(arg, dim, 0) for arg, dim in zip(args, dims)]
        if callable(self.vmap):
            results, has_batch = self.vmap(size, mapped, *args)
            return jax.tree.leaves(results), jax.tree.leaves(has_batch)
        if self.vmap == "batched":
            args = [arg if on else jnp.broadcast_to(arg, (size, *arg.shape)) for arg, on in zip(args, mapped)]
            results = self._bind(args, batch + 1)
        else:

            def one(own):
                own = iter(own)
                return self._bind([next(own) if on else arg for arg, on in zip(args, mapped)], batch)

            results = jax.lax.map(one, [arg for arg, on in zip(args, mapped) if on])
        results = jax.tree.leaves(results)
        return results, [True] * len(results)

    def no_derivative(self):
        return NotImplementedError(
            f"kernel '{self.name}' has no derivative: pass vjp=lambda args, out, cotangent: (one cotangent per input) "
            "to tokamak.kernel, or vjp=(fwd, bwd) as in jax.custom_vjp"
        )

    def other_platform(self, platforms):
        return NotImplementedError(
            f"kernel '{self.name}' has no code for {', '.join(platforms)}: its sources run on Tokamak. "
            "Pass reference=, a JAX function with the same results, to tokamak.kernel"
        )


def _text(aval):
    return f"{aval.dtype}{list(aval.shape)}"


def _macro(value):
    return str(int(value)) if isinstance(value, bool) else str(value)


def _sizes(value):
    return [int(size) for size in value] if isinstance(value, (tuple, list)) else [int(value)]


@functools.lru_cache(256)
def _text_of(path):
    try:
        return pathlib.Path(path).read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def _place_of(source, caller):
    """The file and line where a source begins, if it is written as it is in the caller's file."""
    at = _text_of(caller).find(source)
    return None if at < 0 else [caller, _text_of(caller).count("\n", 0, at) + 1]
