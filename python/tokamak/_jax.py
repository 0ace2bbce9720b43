"""All code of Tokamak that uses private names of JAX. No other module of the package may use them.

For an unknown platform JAX provides no donation, no callbacks, and no eigh, eig, svd and so on. `extend()` adds
them. Each addition is a row of `_FEATURES` and is independent: if a newer JAX lacks a name, that feature is
disabled with a line in the log, and the rest works. `features` has the outcome of each.
Tested with JAX 0.10.2 and 0.11.2 (python/tests/test_jax_names.py).
"""

import contextlib
import dataclasses
import difflib
import functools
import logging
import sys

from tokamak import _host_calls, _lapack, _library

logger = logging.getLogger("tokamak")

PLATFORM = "tokamak"

# Outcome of each feature: None, or why it is disabled.
features = {}


def announce():
    """Makes the platform known before it is registered, so that lowering rules can be added and JAX does not
    warn that it is experimental."""
    from jax._src import xla_bridge

    try:
        xla_bridge._nonexperimental_plugins.add(PLATFORM)
    except Exception as error:
        logger.info("tokamak: JAX will call the platform experimental: %r", error)


def _wanted_platforms():
    import jax

    return [name for name in (jax.config.jax_platforms or "").split(",") if name]


def is_excluded():
    """Whether the user selected platforms without this one."""
    wanted = _wanted_platforms()
    return bool(wanted) and PLATFORM not in wanted


def misspelt():
    """A selected platform whose name resembles this one's, or None. JAX's own error does not list this platform then."""
    return next(iter(difflib.get_close_matches(PLATFORM, set(_wanted_platforms()) - {PLATFORM}, n=1, cutoff=0.7)), None)


def is_asked_for():
    """Whether the user selected this platform by name."""
    return PLATFORM in _wanted_platforms()


def register(library, priority):
    from jax._src import xla_bridge

    xla_bridge.register_plugin(PLATFORM, priority=priority, library_path=library)


def extend():
    """Adds each feature once. Never raises."""
    import jax

    for name, add in _FEATURES.items():
        if features.get(name, "not tried") is None:
            continue
        try:
            add()
            features[name] = None
        except Exception as error:
            features[name] = f"{type(error).__name__}: {error}"
            logger.warning("tokamak: %s is off: JAX %s differs from what it was written for (%r)",
                           name, jax.__version__, error)  # fmt: skip


# ---- donation


def _add_donation():
    from jax._src.interpreters import mlir

    if PLATFORM not in mlir._platforms_with_donation:
        mlir._platforms_with_donation.append(PLATFORM)


# ---- JAX's CPU lowering rules


def _take_cpu_rule(primitive):
    """Lowers `primitive` with its CPU rule: to calls of LAPACK or of Python."""
    from jax._src.interpreters import mlir

    entry = mlir._platform_specific_lowerings["cpu"][primitive]
    mlir.register_lowering(primitive, getattr(entry, "rule", entry), platform=PLATFORM)


# Primitives whose CPU rule only calls lapack_*_ffi. triangular_solve is a StableHLO op, which the compiler can
# optimize: it keeps the common rule. That would also work for cholesky, but the unspecified triangle of its result
# would then differ from JAX's CPU backend.
_LAPACK_PRIMITIVES = (
    "cholesky", "eig", "eigh", "geqp3", "geqrf", "hessenberg", "householder_product", "lu", "ormqr", "schur", "svd",
    "tridiagonal", "tridiagonal_solve",
)  # fmt: skip


def _add_linear_algebra():
    from jax._src.lax import linalg

    if not is_excluded():  # otherwise the library is not loaded
        _lapack.offer()
    missing = []
    for name in _LAPACK_PRIMITIVES:
        try:
            _take_cpu_rule(getattr(linalg, name + "_p"))
        except (AttributeError, KeyError):
            missing.append(name)
    try:
        _add_permutation(linalg.lu_pivots_to_permutation_p)
    except (AttributeError, KeyError):
        missing.append("lu_pivots_to_permutation")
    if missing:
        raise NotImplementedError("JAX has no lowering rule for " + ", ".join(missing))


def _add_permutation(primitive):
    """The row swaps of lu as a permutation: on GPUs a call, as for CUDA; the common rule is a loop with one iteration per row."""
    from jax._src.interpreters import mlir

    common, cuda = mlir._lowerings[primitive], mlir._platform_specific_lowerings["cuda"][primitive]
    common, cuda = getattr(common, "rule", common), getattr(cuda, "rule", cuda)

    def lower(context, pivots, **parameters):
        return (cuda if _is_gpu() else common)(context, pivots, **parameters)

    mlir.register_lowering(primitive, lower, platform=PLATFORM)


# ---- functions


def _is_gpu():
    """Whether the platform's devices are GPUs; False if no device has been initialized."""
    from jax._src import xla_bridge

    client = xla_bridge._backends.get(PLATFORM)
    return client is not None and "cpu" not in client.devices()[0].device_kind.lower()


def _add_functions():
    """Keeps erf as an op. JAX's own rule emits CHLO, which is expanded on the way to a plugin into quotients of
    polynomials, up to 7 ulp off. CPUs keep the expansion: their formula of erf is longer than the quotient."""
    from jax._src.interpreters import mlir
    from jax._src.lax import special

    common = mlir._lowerings[special.erf_p]
    common = getattr(common, "rule", common)

    def lower(context, x, **parameters):
        if not _is_gpu():
            return common(context, x, **parameters)
        attributes = {"mhlo.attributes": mlir.ir.DictAttr.get({}), "mhlo.version": mlir.i64_attr(1)}
        call = mlir.custom_call("mhlo.erf", result_types=[x.type], operands=[x], extra_attributes=attributes)
        return call.results

    mlir.register_lowering(special.erf_p, lower, platform=PLATFORM)


def _add_fused():
    """jax.experimental.fused: its custom call is a require_fused constraint (the pass read-library-calls)."""
    from jax._src.interpreters import mlir

    try:
        from jax.experimental import fused
    except ImportError:
        return  # this JAX does not have it
    mlir.register_lowering(fused.fused_p, fused._fused_lowering, platform=PLATFORM)


# ---- callbacks


def _checked(callback, result_avals):
    """`callback` with its results checked against their declared types. The messages are JAX's own."""
    import numpy as np
    from jax._src import dtypes

    def call(*arguments):
        values = callback(*arguments)
        if len(values) != len(result_avals):
            raise RuntimeError(
                "Mismatched number of outputs from callback. "
                f"Expected: {len(result_avals)}, Actual: {len(values)}"
            )
        values = tuple(dtypes.canonicalize_value(np.asarray(value)) for value in values)
        for i, (value, aval) in enumerate(zip(values, result_avals)):
            if value.shape != aval.shape:
                raise RuntimeError(
                    f"Incorrect output shape for return value #{i}: Expected: {aval.shape}, Actual: {value.shape}"
                )
            if value.dtype != aval.dtype:
                raise RuntimeError(
                    f"Incorrect output dtype for return value #{i}: Expected: {aval.dtype}, Actual: {value.dtype}"
                )
        return values

    return call


def _emit(ctx, callback, token, operands, result_avals, has_side_effect, sharding):
    """custom_call @tokamak_py_callback([token,] operands...) -> ([token,] results...)"""
    import numpy as np
    from jax._src import core, ffi
    from jax._src.interpreters import mlir

    keep = _host_calls.register(_checked(callback, tuple(result_avals)))
    ctx.module_context.add_keepalive(keep)
    if token:
        operands = [token, *operands]
        sharding = _with_token(sharding) if ctx.avals_out else sharding
        ctx = ctx.replace(
            avals_in=[core.abstract_token, *ctx.avals_in], avals_out=[core.abstract_token, *ctx.avals_out]
        )
    build = ffi.build_ffi_lowering_function(_host_calls.TARGET, has_side_effect=has_side_effect)
    op = build(ctx, *operands, id=np.int64(keep.id))
    if sharding is not None:
        mlir.set_sharding(ctx.module_context, op, sharding)
    results = list(op.results)
    if token:
        token, *results = results
    return results, token, keep


def _with_token(sharding):
    """The sharding of a call's results, with that of its token first."""
    from jax._src import sharding_impls

    if not isinstance(sharding, sharding_impls.SdyArrayList):
        return sharding
    of_token = dataclasses.replace(sharding.shardings[0], dim_shardings=())
    return sharding_impls.SdyArrayList((of_token, *sharding.shardings))


def _add_callbacks():
    from jax._src import callback as callbacks
    from jax._src import checkify, debugging
    from jax._src.interpreters import mlir

    if getattr(callbacks.emit_python_callback, "for_tokamak", False):
        return
    of_jax = callbacks.emit_python_callback

    @functools.wraps(of_jax)
    def emit_python_callback(
        ctx, callback, token, operands, operand_avals, result_avals, *, has_side_effect, sharding=None, **rest
    ):
        if tuple(ctx.module_context.platforms) != (PLATFORM,):
            return of_jax(ctx, callback, token, operands, operand_avals, result_avals,
                          has_side_effect=has_side_effect, sharding=sharding, **rest)  # fmt: skip
        return _emit(ctx, callback, token, operands, result_avals, has_side_effect, sharding)

    emit_python_callback.for_tokamak = True
    callbacks.emit_python_callback = emit_python_callback
    for module in (mlir, sys.modules.get("jax.interpreters.mlir")):  # where other modules import it from
        if getattr(module, "emit_python_callback", None) is of_jax:
            module.emit_python_callback = emit_python_callback
    for primitive in (debugging.debug_callback_p, debugging.debug_print_p, checkify.check_p):
        _take_cpu_rule(primitive)


@functools.cache  # called for each callback
def _cpu():
    """JAX's CPU device, or None."""
    from jax._src import xla_bridge

    try:
        return xla_bridge.local_devices(backend="cpu")[0]
    except RuntimeError:
        return None


@functools.cache
def _putter():
    """Returns a function that puts a NumPy array on the CPU device in an eighth of the time of jax.device_put (10 us), or None."""
    import numpy as np

    try:
        from jax._src.core import ShapedArray
        from jax._src.interpreters.pxla import batched_device_put
        from jax.sharding import SingleDeviceSharding

        sharding, shaped = SingleDeviceSharding(_cpu()), functools.lru_cache(1024)(ShapedArray)

        def put(array):
            return batched_device_put(shaped(array.shape, array.dtype), sharding, [array], [_cpu()])

        put(np.zeros(1, np.float32))
        return put
    except Exception as error:
        logger.info("tokamak: callbacks take their arguments by jax.device_put: %r", error)
        return None


def _without_cpu(impl, what):
    """JAX puts a callback's arguments on a CPU device; for our programs this uses a faster path. With JAX_PLATFORMS=tokamak
    there is no CPU device and JAX raises; the callback then gets NumPy arrays. Exceptions are logged, as JAX does."""

    @functools.wraps(impl)
    def call(*arguments, callback, **params):
        import jax
        import numpy as np

        put, where = np.asarray, contextlib.nullcontext()
        if _cpu() is not None:
            put = _putter() if _host_calls.is_calling() else None
            if put is None:
                return impl(*arguments, callback=callback, **params)
            where = jax.default_device(_cpu())
        try:
            with where:
                given = callback(*(put(argument) for argument in arguments))
                return jax.tree.map(np.asarray, given) if "result_avals" in params else ()
        except BaseException:
            logging.getLogger(impl.__module__).exception("%s failed", what)
            raise

    call.for_tokamak = True
    return call


def _add_callbacks_without_cpu():
    from jax._src import callback as callbacks
    from jax._src import debugging

    for module, name, what in ((callbacks, "pure_callback_impl", "jax.pure_callback"),
                               (callbacks, "io_callback_impl", "jax.io_callback"),
                               (debugging, "debug_callback_impl", "jax.debug.callback")):  # fmt: skip
        impl = getattr(module, name)
        if not getattr(impl, "for_tokamak", False):
            setattr(module, name, _without_cpu(impl, what))
    debugging.debug_callback_p.def_impl(debugging.debug_callback_impl)


def _add_exit():
    import jax

    # JAX waits for effects in its own atexit handler, which runs after ours.
    _host_calls.before_stop(jax.effects_barrier)


# ---- jax.ffi


_ffi_targets = {}  # keeps the capsules alive


def _register_ffi_target(name, target, platform, api_version=0, traits=0):
    """Passes a target of jax.ffi.register_ffi_target(platform="tokamak") to the library."""
    name = name.decode() if isinstance(name, bytes) else name
    if not _library.has("tok_register_ffi_target"):
        raise NotImplementedError(f"jax.ffi: {name}: this libtokamak.so does not support FFI targets")
    stages = target if isinstance(target, dict) else {"execute": target}
    if set(stages) != {"execute"} or api_version != 1:
        raise NotImplementedError(
            f"jax.ffi: {name}: only typed handlers (api_version 1) with an execute stage are supported, "
            f"not api_version {api_version} with {', '.join(stages)}"
        )
    pointer = _lapack.pointer_in(stages["execute"])
    message = _library.load().tok_register_ffi_target(name.encode(), pointer)
    if message is not None:
        raise NotImplementedError(f"jax.ffi: {message.decode()}")
    _ffi_targets[name] = target


def _add_ffi():
    from jax._src.lib import xla_client

    # JAX immediately passes earlier registrations: one that is rejected must not prevent the others.
    known_before = True

    def register(name, *rest, **more):
        try:
            _register_ffi_target(name, *rest, **more)
        except NotImplementedError as error:
            if not known_before:
                raise
            logger.warning("tokamak: %s", error)

    xla_client.register_custom_call_handler(PLATFORM, register)
    known_before = False


# ---- custom kernels


@functools.cache
def kernel_primitive():
    """The primitive of all calls of custom kernels (_kernel.py). Its parameters: the kernel, its results, batch dimensions."""
    from jax._src import core, dispatch, ffi
    from jax._src.interpreters import ad, batching, mlir

    announce()
    primitive = core.Primitive("tokamak_kernel")
    primitive.multiple_results = True
    primitive.def_impl(functools.partial(dispatch.apply_primitive, primitive))

    @primitive.def_abstract_eval
    def evaluate(*avals, kernel, outs, batch):
        return [core.ShapedArray(out.shape, out.dtype) for out in outs]

    def lower(context, *operands, kernel, outs, batch):
        avals = kernel._avals(context.avals_in)
        build = ffi.build_ffi_lowering_function("tokamak.kernel", operand_output_aliases=kernel.aliases or None)
        return build(context, *operands, kernel=kernel.describe(avals, outs)).results

    def lower_reference(context, *operands, kernel, outs, batch):
        import jax

        if kernel.reference is None:
            raise kernel.other_platform(context.module_context.platforms)

        def call(*args):
            reference = kernel.reference
            for _ in range(batch):
                reference = jax.vmap(reference)
            return jax.tree.leaves(reference(*args))

        return mlir.lower_fun(call, multiple_results=True)(context, *operands)

    def batch_rule(args, dims, *, kernel, outs, batch):
        size = next(arg.shape[dim] for arg, dim in zip(args, dims) if dim is not None)
        results, mapped = kernel.batched(size, args, dims, batch)
        return results, [0 if on else None for on in mapped]

    def no_derivative(primals, tangents, *, kernel, outs, batch):
        raise kernel.no_derivative()

    mlir.register_lowering(primitive, lower_reference)
    mlir.register_lowering(primitive, lower, platform=PLATFORM)
    batching.primitive_batchers[primitive] = batch_rule
    ad.primitive_jvps[primitive] = no_derivative
    return primitive


# ---- interrupts


def _add_interrupts():
    """Makes reading an array that is not ready wait like block_until_ready, which Ctrl-C interrupts; JAX itself ignores signals
    there. The copy to the host is enqueued first: it follows the computation without further calls."""
    from jax._src import array

    of_jax = array.ArrayImpl._value.fget
    if is_excluded() or getattr(of_jax, "for_tokamak", False):
        return

    @functools.wraps(of_jax)
    def value(self):
        if self._npy_value is None:
            self._check_if_deleted()
            if not self.is_ready():
                self.copy_to_host_async()
                self.block_until_ready()
        return of_jax(self)

    value.for_tokamak = True
    array.ArrayImpl._value = property(value)


_FEATURES = {
    "donation": _add_donation,
    "callbacks": _add_callbacks,
    "callbacks without a CPU device": _add_callbacks_without_cpu,
    "effects at exit": _add_exit,
    "linear algebra": _add_linear_algebra,
    "functions": _add_functions,
    "fused": _add_fused,
    "jax.ffi": _add_ffi,
    "interrupts": _add_interrupts,
}
