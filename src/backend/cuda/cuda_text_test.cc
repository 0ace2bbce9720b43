// Tests of the CUDA C++ writer. Where NVRTC is installed, texts are also compiled (compile only, no
// GPU); elsewhere only their form is checked. The kernels are built by hand: every primitive of
// every type, shared memory and its reuse, block multiplications, cold paths, horizontally fused
// launches, persistent loops.

#include "backend/cuda/cuda_text.h"

#include <gtest/gtest.h>

#include "backend/cuda/nvrtc.h"
#include "kernel/builder.h"
#include "kernel/verify.h"
#include "support/splitmix.h"

namespace tokamak::cuda {
namespace {

constexpr ScalarType kTypes[] = {
#define TOK_SCALAR(id, text, bits, kind) ScalarType::k##id,
#include "kernel/scalar_types.def"
};
constexpr Prim kPrims[] = {
#define TOK_PRIM(id, text, arity, operands, result, meaning) Prim::k##id,
#include "kernel/prims.def"
};

bool IsNarrow(ScalarType type) {
  return type == ScalarType::kF16 || type == ScalarType::kBF16;
}

bool Takes(Prim prim, ScalarType type) {
  if (IsNarrow(type)) return false;
  switch (InfoOf(prim).operands) {
    case PrimOperands::kNumber:
      return type != ScalarType::kPred;
    case PrimOperands::kInteger:
      return IsInteger(type);
    case PrimOperands::kFloat:
      return IsFloat(type);
    case PrimOperands::kBits:
      return IsInteger(type) || type == ScalarType::kPred;
    case PrimOperands::kAny:
      return true;
    case PrimOperands::kIndexOnly:
      return type == ScalarType::kIndex;
  }
  return false;
}

// A kernel with every primitive of one type, and every conversion from it.
Kernel Everything(ScalarType type, int index_bits) {
  KernelBuilder b("every_" + std::string(InfoOf(type).text));
  std::vector<ArrayId> results;
  ArrayId x = b.Argument({.name = "x", .type = type, .access = Access::kRead, .size = 96});
  for (ScalarType to : kTypes)
    results.push_back(b.Argument({.name = "to_" + std::string(InfoOf(to).text),
                                  .type = to,
                                  .access = Access::kWrite,
                                  .size = 4096}));
  b.For("t", LoopRole::kThread, b.Index(32), [&](Scalar t) {
    Scalar v[3] = {b.Load(x, t), b.Load(x, t + 32.0), b.Load(x, t + 64.0)};
    int64_t next = 0;
    auto keep = [&](Scalar value) {
      ArrayId to = results[static_cast<size_t>(value.type())];
      b.Store(to, t + static_cast<double>(32 * (next++ % 128)), value);
    };
    for (Prim prim : kPrims) {
      const PrimInfo& info = InfoOf(prim);
      bool plain = info.result == PrimResult::kSame || info.result == PrimResult::kPred;
      if (!plain || !Takes(prim, type)) continue;
      if (info.arity == 1) keep(b.Make(prim, {v[0]}));
      if (info.arity == 2) keep(b.Make(prim, {v[0], v[1]}));
      if (info.arity == 3) keep(b.Make(prim, {v[0], v[1], v[2]}));
    }
    keep(Choose(t < 5.0, v[0], v[1]));
    keep(b.Shuffle(v[0], b.Index(3)));
    if (type == ScalarType::kU32) keep(b.Match(v[0], 5));
    if (type == ScalarType::kF32) keep(v[0] / 3.0);
    for (double number : {0.0, -1.0, 2.5, 1e30, -1e-30}) keep(v[0].Like(number));
    for (ScalarType to : kTypes) {
      bool floats = IsFloat(to) && IsFloat(type);
      bool narrow = IsNarrow(to) || IsNarrow(type);
      if (to != type && to != ScalarType::kPred && (!narrow || floats)) keep(v[0].As(to));
      if (to != type && to != ScalarType::kPred && InfoOf(to).bits == InfoOf(type).bits)
        keep(v[0].BitsAs(to));
    }
  });
  Kernel kernel = b.Finish();
  kernel.index_bits = index_bits;
  return kernel;
}

TEST(CudaText, EveryPrimitiveCompiles) {
  Result<const Nvrtc*> nvrtc = Nvrtc::Open();
  for (ScalarType type : kTypes)
    for (int bits : {32, 64}) {
      Kernel kernel = Everything(type, bits);
      Status sound = VerifyKernel(kernel);
      ASSERT_TRUE(sound.ok()) << sound.error().message;
      Result<CudaSource> source = CudaText(kernel);
      ASSERT_TRUE(source.ok()) << source.error().message;
      if (!nvrtc.ok()) continue;
      Result<CudaCode> code = nvrtc.value()->Compile(source.value(), "sm_90");
      ASSERT_TRUE(code.ok()) << Render(code.error()) << source.value().text;
      EXPECT_GT(code.value().registers, 0) << code.value().log;
      EXPECT_FALSE(code.value().cubin.empty());
    }
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.error().message;
}

TEST(CudaText, SharedMemory) {
  for (int64_t size : {1000, 20000, 100000}) {
    KernelBuilder b("block");
    ArrayId y = b.Argument({.name = "y", .type = ScalarType::kF32, .size = 1});
    ArrayId s = b.Local("s", ScalarType::kF32, Space::kShared, size);
    b.For("t", LoopRole::kThread, b.Index(1), [&](Scalar) {
      b.Store(s, b.Index(size - 1), b.Constant(ScalarType::kF32, 1));
      b.Store(y, b.Index(0), b.Read(s, b.Index(size - 1)));
    });
    Kernel kernel = b.Finish();
    Result<CudaSource> source = CudaText(kernel);
    ASSERT_EQ(source.ok(), size < 50000);
    if (!source.ok()) continue;
    EXPECT_EQ(source.value().dynamic_bytes, size == 20000 ? 80000 : 0);
  }
}

// Threads store to and read one array of 32 KiB, then run rest(b, t, y, second) with another.
template <typename Rest>
Kernel TwoArrays(ScalarType type, Rest&& rest) {
  KernelBuilder b("arrays");
  ArrayId y =
      b.Argument({.name = "y", .type = ScalarType::kF32, .access = Access::kWrite, .size = 64});
  ArrayId first = b.Local("first", ScalarType::kF32, Space::kShared, 8192);
  ArrayId second = b.Local("second", type, Space::kShared, 32768 / BytesOf(type));
  b.For("t", LoopRole::kThread, b.Index(64), [&](Scalar t) {
    b.Store(first, t, b.Constant(ScalarType::kF32, 1));
    b.Store(y, t, b.Read(first, t));
    rest(b, t, y, second);
  });
  return b.Finish();
}

// Two halves of a kernel; with `apart`, a barrier separates them.
Kernel TwoHalves(bool apart) {
  return TwoArrays(ScalarType::kF64, [&](KernelBuilder& b, Scalar t, ArrayId y, ArrayId second) {
    if (apart) b.Barrier(BarrierScope::kBlock);
    b.Store(second, t, b.Constant(ScalarType::kF64, 2));
    b.Store(y, t, b.Read(second, t).As(ScalarType::kF32));
  });
}

// Arrays overlap only if a barrier separates them and shared memory is large.
TEST(CudaText, SharedMemoryIsReused) {
  Kernel apart = TwoHalves(true), together = TwoHalves(false);
  ASSERT_TRUE(VerifyKernel(apart).ok());
  EXPECT_EQ(CudaText(apart).value().dynamic_bytes, 32768);
  EXPECT_EQ(CudaText(together).value().dynamic_bytes, 65536);
}

// A store before the first barrier may overlap with slow threads that still read the previous
// contents.
TEST(CudaText, SharedMemoryIsNotReusedBeforeTheBarrier) {
  Kernel loop =
      TwoArrays(ScalarType::kF32, [](KernelBuilder& b, Scalar t, ArrayId, ArrayId second) {
        b.For("i", LoopRole::kSerial, b.Index(2), [&](Scalar) {
          b.Store(second, t, b.Constant(ScalarType::kF32, 2));
          b.Barrier(BarrierScope::kBlock);
        });
      });
  EXPECT_EQ(CudaText(loop).value().dynamic_bytes, 65536);
}

// A 32 x 16 by 16 x 32 product of zeros.
Kernel Product(ScalarType type, bool is_transposed, bool tf32) {
  KernelBuilder b("product");
  ScalarType sum = *AccumulatorScalarType(type);
  ArrayId y = b.Argument({.name = "y", .type = sum, .access = Access::kWrite, .size = 1024});
  ArrayId lhs = b.Local("lhs", type, Space::kShared, 32 * 40);
  ArrayId rhs = b.Local("rhs", type, Space::kShared, 32 * 40);
  MatrixMultiply product{.lhs = lhs,
                         .rhs = rhs,
                         .lhs_index = b.Index(0).id(),
                         .rhs_index = b.Index(0).id(),
                         .depth = b.Index(16).id(),
                         .rows = 32,
                         .columns = 32,
                         .lhs_row_stride = is_transposed ? 1 : 40,
                         .lhs_column_stride = is_transposed ? 40 : 1,
                         .rhs_row_stride = is_transposed ? 1 : 40,
                         .rhs_column_stride = is_transposed ? 40 : 1,
                         .warp_rows = 16,
                         .warp_columns = 8,
                         .tf32 = tf32};
  ArrayId sums = b.Local("sums", sum, Space::kRegisters, product.AccumulatorsPerThread());
  b.For("t", LoopRole::kThread, b.Index(product.Threads()), [&](Scalar t) {
    b.For("i", LoopRole::kSerial, b.Index(5), [&](Scalar i) {
      Scalar at = i * b.Index(256) + t;
      b.Store(lhs, at, b.Constant(type, 0));
      b.Store(rhs, at, b.Constant(type, 0));
    });
    for (int64_t s = 0; s < 4; ++s) b.Store(sums, b.Index(s), b.Constant(sum, 0));
    b.Barrier(BarrierScope::kBlock);
    b.Multiply(sums, b.Index(0), product);
    for (int64_t s = 0; s < 4; ++s) {
      AccumulatorPosition<Scalar> at(product, t, b.Index(s), [&](int64_t x) { return b.Index(x); });
      b.Store(y, at.row * b.Index(32) + at.column, b.Read(sums, b.Index(s)));
    }
  });
  return b.Finish();
}

// Of 2 x 4 warps, adjacent ones compute adjacent columns.
TEST(CudaText, WarpsOfAProductLieAlongItsColumns) {
  std::string text = CudaText(Product(ScalarType::kF32, false, false)).value().text;
  EXPECT_NE(text.find("BlockMultiply<16, 8, 4, 16, 40, 1, 40, 1>("), std::string::npos) << text;
  text = CudaText(Product(ScalarType::kF32, true, false)).value().text;
  EXPECT_NE(text.find("BlockMultiply<16, 8, 4, 16, 1, 40, 1, 40>("), std::string::npos) << text;
}

// Tensor cores multiply 16-bit types and tf32.
TEST(CudaText, BlockMultiply) {
  Result<const Nvrtc*> nvrtc = Nvrtc::Open();
  for (ScalarType type : {ScalarType::kBF16, ScalarType::kF16, ScalarType::kF32, ScalarType::kF64,
                          ScalarType::kS32}) {
    for (bool is_transposed : {false, true}) {
      for (bool tf32 : {false, true}) {
        if (tf32 && type != ScalarType::kF32) continue;
        Kernel kernel = Product(type, is_transposed, tf32);
        Status sound = VerifyKernel(kernel);
        ASSERT_TRUE(sound.ok()) << sound.error().message;
        Result<CudaSource> source = CudaText(kernel);
        ASSERT_TRUE(source.ok()) << source.error().message;
        bool calls = source.value().text.find("  BlockMultiplyTensor<Tensor") != std::string::npos;
        EXPECT_EQ(calls, IsNarrow(type) || tf32);
        if (!nvrtc.ok()) continue;
        Result<CudaCode> code = nvrtc.value()->Compile(source.value(), "sm_90");
        ASSERT_TRUE(code.ok()) << Render(code.error()) << source.value().text;
        EXPECT_GT(code.value().registers, 0) << code.value().log;
      }
    }
  }
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.error().message;
}

// Blocks of `threads` threads; each thread adds one to an element. A block uses `size` elements of
// shared memory.
Kernel AddOne(int64_t threads, int64_t size) {
  KernelBuilder b("add_one");
  ArrayId x = b.Argument(
      {.name = "x", .type = ScalarType::kF32, .access = Access::kRead, .size = 4 * threads});
  ArrayId y = b.Argument(
      {.name = "y", .type = ScalarType::kF32, .access = Access::kWrite, .size = 4 * threads});
  ArrayId s = b.Local("s", ScalarType::kF32, Space::kShared, size);
  b.For("block", LoopRole::kGrid, b.Index(4), [&](Scalar block) {
    b.For("t", LoopRole::kThread, b.Index(threads), [&](Scalar t) {
      Scalar at = block * b.Index(threads) + t;
      b.If(t == b.Index(0), [&] { b.Store(s, b.Index(size - 1), b.Load(x, at)); });
      b.Barrier(BarrierScope::kBlock);
      b.Store(y, at, b.Read(s, b.Index(size - 1)) + b.Load(x, at));
    });
  });
  return b.Finish();
}

// Values that do not depend on a branch are written before it, even if they are stored after values
// that do.
TEST(CudaText, ColdPathsComeLast) {
  constexpr ScalarType kF32 = ScalarType::kF32;
  KernelBuilder b("k", Dialect::kGpu);
  ArrayId x = b.Argument({.name = "x", .type = kF32, .access = Access::kRead, .size = 32});
  ArrayId y = b.Argument({.name = "y", .type = kF32, .access = Access::kWrite, .size = 32});
  b.For("t", LoopRole::kThread, b.Index(32), [&](Scalar t) {
    ArrayId state = b.Local("state", kF32, Space::kRegisters, 1);
    ArrayId key = b.Local("key", kF32, Space::kRegisters, 1);
    Scalar zero = b.Index(0), v = b.Load(x, t);
    Scalar slow = v;
    for (int i = 0; i < 40; ++i) slow = Fma(slow, v, v.Like(1.25));
    b.Store(state, zero, Choose(v.Like(1e30) < v, slow, v * v));
    b.Store(key, zero, v + v.Like(7.5));
    b.Store(y, t, b.Read(state, zero) + b.Read(key, zero));
  });
  Kernel kernel = b.Finish();
  ASSERT_TRUE(VerifyKernel(kernel).ok());
  Result<CudaSource> source = CudaText(kernel);
  ASSERT_TRUE(source.ok());
  const std::string& text = source.value().text;
  ASSERT_NE(text.find("if ("), std::string::npos) << text;
  EXPECT_LT(text.find("7.5f"), text.find("if (")) << text;
  EXPECT_GT(text.find("1.25f"), text.find("if (")) << text;
}

// Equal kernels are one function; a block has the threads and the shared memory of the largest. Few
// pointers are a parameter, many are a table in memory.
TEST(HorizontalLaunch, KernelsOfOneLaunch) {
  Result<const Nvrtc*> nvrtc = Nvrtc::Open();
  Kernel small = AddOne(40, 100), same = AddOne(40, 100), large = AddOne(96, 20000);
  for (size_t times : {1, 100}) {
    std::vector<HorizontalKernel> entries;
    for (size_t i = 0; i < times; ++i)
      for (const Kernel* kernel : {&small, &large, &same}) entries.push_back({kernel, 4});
    Result<HorizontalSource> made = HorizontalText("pack", entries);
    ASSERT_TRUE(made.ok()) << made.error().message;
    const CudaSource& source = made.value().source;
    EXPECT_EQ(source.threads, (std::array<int, 3>{96, 1, 1}));
    EXPECT_EQ(source.dynamic_bytes, 80000);
    EXPECT_EQ(made.value().table, times == 1 ? PointerTable::kParameter : PointerTable::kMemory);
    EXPECT_NE(source.text.find("void entry_1("), std::string::npos);
    EXPECT_EQ(source.text.find("void entry_2("), std::string::npos);
    EXPECT_NE(source.text.find("if (threadIdx.x >= 40) return;"), std::string::npos);
    EXPECT_EQ(source.text.find("if (threadIdx.x >= 96) return;"), std::string::npos);
    if (!nvrtc.ok()) continue;
    Result<CudaCode> code = nvrtc.value()->Compile(source, "sm_90");
    ASSERT_TRUE(code.ok()) << Render(code.error()) << source.text;
  }
}

// The texts are equal because they do not use the thread index; each kernel keeps its own thread
// count.
TEST(HorizontalLaunch, EqualTextsOfOtherThreads) {
  auto fill = [](int64_t threads) {
    KernelBuilder b("fill");
    ArrayId y = b.Argument(
        {.name = "y", .type = ScalarType::kF32, .access = Access::kWrite, .size = threads});
    b.For("block", LoopRole::kGrid, b.Index(1), [&](Scalar) {
      b.For("t", LoopRole::kThread, b.Index(threads),
            [&](Scalar t) { b.Store(y, t, b.Constant(ScalarType::kF32, 0)); });
    });
    return b.Finish();
  };
  Kernel few = fill(6), some = fill(18), many = fill(36);
  std::vector<HorizontalKernel> entries = {{&some, 1}, {&few, 1}, {&many, 1}};
  Result<HorizontalSource> made = HorizontalText("pack", entries);
  ASSERT_TRUE(made.ok()) << made.error().message;
  for (const char* own : {"threadIdx.x >= 6)", "threadIdx.x >= 18)", "threadIdx.x >= 36)"})
    EXPECT_NE(made.value().source.text.find(own), std::string::npos) << made.value().source.text;
}

// A loop over kernels of several block sizes: the smaller ones have their own named barriers.
TEST(CudaLoop, IterationsOfOneLaunch) {
  Kernel small = AddOne(64, 100), large = AddOne(96, 20000);
  std::vector<HorizontalKernel> entries = {{&small, 4}, {&small, 4}, {&large, 4}};
  LoopShape shape;
  shape.alternates_buffers = true;
  shape.condition = {{.entries = 1}};
  shape.body = {
      {.entries = 1, .needs_barrier = true}, {.bytes = 24}, {.entries = 1, .needs_barrier = true}};
  shape.closing = {{.bytes = 24}};
  LoopPointers pointers = PointersOf(shape, entries);
  EXPECT_EQ(pointers.condition, 2);
  EXPECT_EQ(pointers.iteration, 2 + 1 + 2 + 2 + 2);
  EXPECT_EQ(pointers.all, 2 * pointers.iteration + 2);
  Result<CudaSource> made = CudaLoopText("loop", entries, shape);
  ASSERT_TRUE(made.ok()) << made.error().message;
  const CudaSource& source = made.value();
  EXPECT_EQ(source.threads, (std::array<int, 3>{96, 1, 1}));
  EXPECT_EQ(source.dynamic_bytes, 80000);
  EXPECT_NE(source.text.find("bar.sync 1, 64;"), std::string::npos);
  EXPECT_NE(source.text.find("if (threadIdx.x < 64)"), std::string::npos);
  Result<const Nvrtc*> nvrtc = Nvrtc::Open();
  if (nvrtc.ok()) {
    Result<CudaCode> code = nvrtc.value()->Compile(source, "sm_90");
    ASSERT_TRUE(code.ok()) << Render(code.error()) << source.text;
  }
  // In one phase, the second kernel's blocks follow the first one's.
  EXPECT_EQ(source.text.find("4u % gridDim.x"), std::string::npos);
  shape.body = {{.entries = 2, .needs_barrier = true}};
  made = CudaLoopText("loop", entries, shape);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_NE(made.value().text.find("4u % gridDim.x"), std::string::npos);
  Kernel uneven = AddOne(40, 100);
  entries[0].kernel = &uneven;
  EXPECT_FALSE(CudaLoopText("loop", entries, shape).ok());
}

size_t CountOf(std::string_view what, std::string_view text) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

// Grid barriers precede the condition and the phases that request one, and end an iteration; block
// barriers separate blocks that reuse shared memory. The closing copies depend on the parity of the
// iterations of all launches.
TEST(CudaLoop, BarrierWhereOneNeedsTheOther) {
  Kernel small = AddOne(64, 100);
  std::vector<HorizontalKernel> entries = {{&small, 4}, {&small, 4}, {&small, 4}};
  LoopShape shape;
  shape.alternates_buffers = true;
  shape.condition = {{.entries = 1}};
  shape.body = {{.entries = 1}, {.entries = 1, .needs_barrier = true}};
  shape.closing = {{.bytes = 24}};
  Result<CudaSource> made = CudaLoopText("loop", entries, shape);
  ASSERT_TRUE(made.ok()) << made.error().message;
  std::string text = made.value().text.substr(made.value().text.find("__global__"));
  EXPECT_EQ(CountOf("GridBarrier(barrier, wanted);", text), 3) << text;
  EXPECT_LT(text.find("GridBarrier(barrier, wanted);"), text.find("goes_on = *")) << text;
  EXPECT_EQ(CountOf("__syncthreads();", text), entries.size()) << text;
  EXPECT_NE(text.find("closes) && ((iteration + odd) & 1) != 0)"), std::string::npos) << text;
}

}  // namespace
}  // namespace tokamak::cuda
