"""Native handlers of jax.ffi, built against the headers that jaxlib ships."""

import ctypes
import os
import shutil
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pytest

SOURCE = r"""
#include <cstring>
#include <cstdint>
#include <string>
#include <thread>
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;

ffi::Error Scale(ffi::Buffer<ffi::F32> x, float by, int64_t plus, std::string_view mode, ffi::Span<const int64_t> dims,
                 ffi::Dictionary more, ffi::ResultBuffer<ffi::F32> y) {
  if (mode == "fail") return ffi::Error::InvalidArgument("the mode is fail");
  if (dims.size() != x.dimensions().size()) return ffi::Error::Internal("dims");
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != x.dimensions()[i]) return ffi::Error::Internal("a dim");
  auto twice = more.get<bool>("twice");
  if (twice.has_error()) return twice.error();
  for (size_t i = 0; i < x.element_count(); ++i)
    y->typed_data()[i] = (x.typed_data()[i] * by + plus) * (*twice ? 2 : 1);
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(scale, Scale, ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Attr<float>("by")
    .Attr<int64_t>("plus").Attr<std::string_view>("mode").Attr<ffi::Span<const int64_t>>("dims")
    .Attr<ffi::Dictionary>("more").Ret<ffi::Buffer<ffi::F32>>());

ffi::Error Sorted(ffi::AnyBuffer x, ffi::ScratchAllocator scratch, ffi::ThreadPool pool, ffi::Result<ffi::AnyBuffer> y,
                  ffi::Result<ffi::Buffer<ffi::S32>> n) {
  auto memory = scratch.Allocate(x.size_bytes());
  if (!memory.has_value()) return ffi::Error::Internal("no scratch");
  pool.Schedule([&] { std::memcpy(*memory, x.untyped_data(), x.size_bytes()); });
  std::memcpy(y->untyped_data(), *memory, x.size_bytes());
  n->typed_data()[0] = static_cast<int32_t>(x.element_type());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(sorted, Sorted, ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ctx<ffi::ScratchAllocator>()
    .Ctx<ffi::ThreadPool>().Ret<ffi::AnyBuffer>().Ret<ffi::Buffer<ffi::S32>>());

ffi::Future Later(ffi::Buffer<ffi::F32> x, ffi::Result<ffi::Buffer<ffi::F32>> y) {
  ffi::Promise promise;
  ffi::Future future(promise);
  std::thread([promise, x, y]() mutable {
    y->typed_data()[0] = x.typed_data()[0] + 1;
    if (x.typed_data()[0] < 0) promise.SetError(ffi::Error::Internal("below zero"));
    else promise.SetAvailable();
  }).detach();
  return future;
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(later, Later, ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("ffi")
    (folder / "handlers.cc").write_text(SOURCE)
    subprocess.run([compiler, "-std=c++17", "-O0", "-shared", "-fPIC", "-I", jax.ffi.include_dir(),
                    "-o", folder / "handlers.so", folder / "handlers.cc"], check=True)  # fmt: skip
    library = ctypes.CDLL(str(folder / "handlers.so"))
    for name in ("scale", "sorted", "later"):
        jax.ffi.register_ffi_target(f"tok_{name}", jax.ffi.pycapsule(getattr(library, name)), platform="tokamak")
    return library


def scaled(x, mode="run", **changes):
    attributes = {"by": np.float32(3), "plus": 1, "mode": mode, "dims": np.array(x.shape), "more": {"twice": True}, **changes}
    return jax.ffi.ffi_call("tok_scale", jax.ShapeDtypeStruct(x.shape, x.dtype))(x, **attributes)


def test_attributes_arrive_with_their_types(library):
    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(jax.jit(scaled)(x), (np.arange(6.0).reshape(2, 3) * 3 + 1) * 2)


def test_an_error_of_the_handler_is_an_exception_with_its_text(library):
    with pytest.raises(jax.errors.JaxRuntimeError, match="tok_scale.*the mode is fail"):
        jax.block_until_ready(jax.jit(lambda x: scaled(x, mode="fail"))(jnp.ones(3)))
    with pytest.raises(jax.errors.JaxRuntimeError, match="by"):  # an f64 where the handler expects an f32
        jax.block_until_ready(jax.jit(lambda x: scaled(x, by=np.float64(3)))(jnp.ones(3)))
    assert jax.jit(scaled)(jnp.ones(1)).tolist() == [8]


def test_scratch_memory_the_pool_and_any_type(library):
    call = jax.ffi.ffi_call("tok_sorted", (jax.ShapeDtypeStruct((4,), jnp.bfloat16), jax.ShapeDtypeStruct((), jnp.int32)))
    y, kind = jax.jit(call)(jnp.arange(4, dtype=jnp.bfloat16))
    assert y.tolist() == [0, 1, 2, 3] and int(kind) == 16


def test_a_handler_that_goes_on_after_it_returned(library):
    call = jax.jit(jax.ffi.ffi_call("tok_later", jax.ShapeDtypeStruct((1,), jnp.float32)))
    assert call(jnp.ones(1)).tolist() == [2]
    with pytest.raises(jax.errors.JaxRuntimeError, match="below zero"):
        jax.block_until_ready(call(-jnp.ones(1)))


def test_unsupported_features_report_it(library):
    capsule = jax.ffi.pycapsule(library.scale)
    with pytest.raises(NotImplementedError, match="tok_staged.*instantiate"):
        jax.ffi.register_ffi_target("tok_staged", {"instantiate": capsule, "execute": capsule}, platform="tokamak")
    with pytest.raises(NotImplementedError, match="tok_old.*api_version 0"):
        jax.ffi.register_ffi_target("tok_old", capsule, platform="tokamak", api_version=0)
    with pytest.raises(jax.errors.JaxRuntimeError, match="tok_nobody"):
        jax.jit(jax.ffi.ffi_call("tok_nobody", jax.ShapeDtypeStruct((1,), jnp.float32)))(jnp.ones(1)).block_until_ready()
