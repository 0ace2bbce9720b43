// Tests of asynchronous work in CUDA C++ (cuda_async.cc): a GEMM by bulk copies and warpgroup
// multiplies. Where NVRTC is installed, the texts are also compiled; where a GPU is, they run.

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "backend/cuda/cuda_text.h"
#include "backend/cuda/gpu.h"
#include "backend/cuda/nvrtc.h"
#include "kernel/builder.h"
#include "kernel/formulas.h"
#include "kernel/verify.h"
#include "support/splitmix.h"

namespace tokamak::cuda {
namespace {

constexpr int64_t kGroup = MatrixMultiply::kWarpgroupThreads;
constexpr int64_t kRows = MatrixMultiply::kWarpgroupRows;

struct GemmShape {
  ScalarType type = ScalarType::kBF16;
  int64_t m = 4096, n = 4096, k = 4096;
  int64_t columns = 256, warpgroups = 2, stages = 4;  // of a tile of 64 * warpgroups rows
  bool lhs_is_k_major = true, rhs_is_k_major = true, lhs_in_registers = false;
  int64_t panels = 1;  // of 128 bytes along the depth, per stage
  std::array<Float8, 2> float8{};

  ScalarType SumType() const {
    bool is_integer = BytesOf(type) == 1 && float8[0] == Float8::kNone;
    return is_integer ? ScalarType::kS32 : ScalarType::kF32;
  }
};

// Writes the GEMM of async_ir: one warpgroup copies, the others multiply.
class GemmWriter {
 public:
  explicit GemmWriter(const GemmShape& shape)
      : shape_(shape),
        line_(MatrixMultiply::kPanelBytes / BytesOf(shape.type)),
        depth_(line_ * shape.panels),
        rows_(kRows * shape.warpgroups),
        b_("gemm", Dialect::kGpu) {}

  Kernel Write() {
    ScalarType type = shape_.type, sum = shape_.SumType();
    lhs_ = b_.Argument(Argument("a", type, Access::kRead, shape_.m * shape_.k));
    rhs_ = b_.Argument(Argument("b", type, Access::kRead, shape_.n * shape_.k));
    result_ = b_.Argument(Argument("c", sum, Access::kWrite, shape_.m * shape_.n));
    lhs_tiles_ = b_.Local("lhs", type, Space::kShared, shape_.stages * rows_ * depth_, 1024);
    rhs_tiles_ =
        b_.Local("rhs", type, Space::kShared, shape_.stages * shape_.columns * depth_, 1024);
    full_ = b_.Mbarriers("full", shape_.stages, 1);
    empty_ = b_.Mbarriers("empty", shape_.stages, shape_.warpgroups * kGroup / kWarpSize);
    sums_ = b_.Local("sums", sum, Space::kRegisters, shape_.columns / 2);
    if (shape_.lhs_in_registers) pairs_ = b_.Local("pairs", type, Space::kRegisters, depth_ / 2);
    int64_t across = (shape_.n + shape_.columns - 1) / shape_.columns;
    int64_t tiles = (shape_.m + rows_ - 1) / rows_ * across;
    b_.For("tile", LoopRole::kGrid, b_.Index(tiles), [&](Scalar tile) {
      row_ = tile / b_.Index(across) * b_.Index(rows_);
      column_ = tile % b_.Index(across) * b_.Index(shape_.columns);
      int64_t threads = (shape_.warpgroups + 1) * kGroup;
      b_.For("t", LoopRole::kThread, b_.Index(threads), [&](Scalar t) {
        b_.If(
            t < b_.Index(kGroup), [&] { Produce(t); }, [&] { Consume(t - b_.Index(kGroup)); },
            false);
      });
    });
    Kernel kernel = b_.Finish();
    kernel.index_bits = 32;
    return kernel;
  }

 private:
  static Array Argument(std::string name, ScalarType type, Access access, int64_t size) {
    return {.name = std::move(name), .type = type, .access = access, .size = size};
  }
  int64_t Steps() const { return (shape_.k + depth_ - 1) / depth_; }
  template <typename Body>
  void Pipeline(Body&& body) {
    b_.For("k", LoopRole::kSerial, b_.Index(Steps()), [&](Scalar k) {
      Scalar stages = b_.Index(shape_.stages);
      body(k, k % stages, k / stages % b_.Index(2));
    });
  }

  void Produce(Scalar t) {
    b_.LimitRegisters(40);
    b_.If(t == b_.Index(0), [&] {
      Pipeline([&](Scalar k, Scalar stage, Scalar parity) {
        b_.Wait(empty_, stage, b_.Index(1) - parity);
        b_.Arrive(full_, stage, (rows_ + shape_.columns) * depth_ * BytesOf(shape_.type));
        Copy({lhs_, lhs_tiles_, shape_.m, rows_, shape_.lhs_is_k_major}, stage, k, row_);
        Copy({rhs_, rhs_tiles_, shape_.n, shape_.columns, shape_.rhs_is_k_major}, stage, k,
             column_);
      });
    });
  }

  // An operand of `size` rows along i or j; a tile has `rows` of them.
  struct Side {
    ArrayId from, to;
    int64_t size, rows;
    bool is_k_major;
  };

  // The rows of a tile from `row` on; all panels of a stage.
  void Copy(const Side& side, Scalar stage, Scalar k, Scalar row) {
    auto [from, to, size, rows, is_k_major] = side;
    Scalar begin = stage * b_.Index(rows * depth_), first = k * b_.Index(depth_);
    int64_t panels = is_k_major ? shape_.panels : rows / line_;
    for (int64_t panel = 0; panel < panels; ++panel) {
      Scalar along = b_.Index(panel * line_);
      TileCopy copy;
      copy.from = from;
      copy.to = to;
      copy.swizzled = true;
      if (is_k_major) {
        copy.dimensions = {{shape_.k, 1, line_, (first + along).id()},
                           {size, shape_.k, rows, row.id()}};
      } else {
        copy.dimensions = {{size, 1, line_, (row + along).id()},
                           {shape_.k, size, depth_, first.id()}};
      }
      copy.to_index = (begin + b_.Index(panel * line_ * (is_k_major ? rows : depth_))).id();
      b_.Copy(full_, stage, copy);
    }
  }

  MatrixMultiply Product() const {
    MatrixMultiply product{.lhs = lhs_tiles_, .rhs = rhs_tiles_};
    product.rows = kRows;
    product.columns = shape_.columns;
    product.warp_rows = MatrixMultiply::kFragmentRows;
    product.warp_columns = shape_.columns;
    product.lhs_row_stride = shape_.lhs_is_k_major ? line_ : 1;
    product.lhs_column_stride = shape_.lhs_is_k_major ? 1 : line_;
    product.rhs_row_stride = shape_.rhs_is_k_major ? 1 : line_;
    product.rhs_column_stride = shape_.rhs_is_k_major ? line_ : 1;
    product.lhs_panel = line_ * (shape_.lhs_is_k_major ? rows_ : depth_);
    product.rhs_panel = line_ * (shape_.rhs_is_k_major ? shape_.columns : depth_);
    product.tf32 = shape_.type == ScalarType::kF32;
    product.float8 = shape_.float8;
    product.async = true;
    return product;
  }

  void Consume(Scalar t) {
    b_.LimitRegisters(232);
    b_.For("z", LoopRole::kUnrolled, b_.Index(shape_.columns / 2),
           [&](Scalar z) { b_.Store(sums_, z, b_.Constant(b_.kernel().array(sums_).type, 0)); });
    Scalar group = t / b_.Index(kGroup), lane = t % b_.Index(kWarpSize);
    Pipeline([&](Scalar k, Scalar stage, Scalar parity) {
      b_.Wait(full_, stage, parity);
      MatrixMultiply product = Product();
      Scalar lhs = stage * b_.Index(rows_ * depth_) +
                   group * b_.Index(shape_.lhs_is_k_major ? kRows * line_ : product.lhs_panel);
      if (shape_.lhs_in_registers) {
        LoadPairs(t % b_.Index(kGroup), lhs);
        product.lhs = pairs_;
        lhs = b_.Index(0);
      }
      product.lhs_index = lhs.id();
      product.rhs_index = (stage * b_.Index(shape_.columns * depth_)).id();
      product.depth = b_.Index(depth_).id();
      b_.Multiply(sums_, b_.Index(0), product);
      // The registers of lhs may be stored again when all multiplies are done.
      int64_t pending = shape_.lhs_in_registers ? 0 : 1;
      b_.WaitMultiplies(sums_, pending);
      Scalar done = k - b_.Index(pending);
      b_.If((lane == b_.Index(0)) & (done >= b_.Index(0)),
            [&] { b_.Arrive(empty_, done % b_.Index(shape_.stages)); });
    });
    if (!shape_.lhs_in_registers) b_.WaitMultiplies(sums_, 0);
    MatrixMultiply product = Product();
    b_.For("s", LoopRole::kUnrolled, b_.Index(shape_.columns / 2), [&](Scalar s) {
      AccumulatorPosition<Scalar> at(product, t % b_.Index(kGroup), s,
                                     [&](int64_t x) { return b_.Index(x); });
      Scalar row = row_ + group * b_.Index(kRows) + at.row, column = column_ + at.column;
      b_.If((row < b_.Index(shape_.m)) & (column < b_.Index(shape_.n)),
            [&] { b_.Store(result_, row * b_.Index(shape_.n) + column, b_.Read(sums_, s)); });
    });
  }

  // The fragments of lhs of a warpgroup, from the K-major panel at `lhs`.
  void LoadPairs(Scalar t, Scalar lhs) {
    Scalar lane = t % b_.Index(kWarpSize);
    b_.For("f", LoopRole::kUnrolled, b_.Index(depth_ / 2), [&](Scalar f) {
      Scalar row = t / b_.Index(kWarpSize) * b_.Index(16) + lane / b_.Index(4) +
                   f % b_.Index(4) / b_.Index(2) * b_.Index(8);
      Scalar column =
          f / b_.Index(4) * b_.Index(8) + lane % b_.Index(4) * b_.Index(2) + f % b_.Index(2);
      Scalar chunk = column / b_.Index(8) ^ row % b_.Index(8);
      Scalar at = lhs + row * b_.Index(64) + chunk * b_.Index(8) + column % b_.Index(8);
      b_.Store(pairs_, f, b_.Read(lhs_tiles_, at));
    });
  }

  GemmShape shape_;
  int64_t line_, depth_, rows_;  // elements of 128 bytes, of a stage along k, and along i
  KernelBuilder b_;
  ArrayId lhs_{}, rhs_{}, result_{}, lhs_tiles_{}, rhs_tiles_{}, full_{}, empty_{}, sums_{},
      pairs_{};
  Scalar row_, column_;
};

Kernel Gemm(const GemmShape& shape) {
  return GemmWriter(shape).Write();
}

CudaSource TextOf(const Kernel& kernel) {
  Status sound = VerifyKernel(kernel);
  EXPECT_TRUE(sound.ok()) << (sound.ok() ? "" : sound.error().message);
  Result<CudaSource> source = CudaText(kernel);
  EXPECT_TRUE(source.ok()) << (source.ok() ? "" : source.error().message);
  return source.ok() ? std::move(source.value()) : CudaSource{};
}

bool Has(const CudaSource& source, std::string_view part) {
  return source.text.find(part) != std::string::npos;
}

std::string NameOf(const GemmShape& shape) {
  return fmt::format("{}{}{} {} {}{}{} {} panels", InfoOf(shape.type).text, TextOf(shape.float8[0]),
                     TextOf(shape.float8[1]), shape.columns, shape.lhs_in_registers ? "R" : "",
                     shape.lhs_is_k_major ? "K" : "M", shape.rhs_is_k_major ? "K" : "N",
                     shape.panels);
}

std::vector<GemmShape> Shapes() {
  std::vector<GemmShape> shapes;
  for (ScalarType type : {ScalarType::kBF16, ScalarType::kF16})
    for (int64_t columns : {256, 128})
      for (bool lhs : {true, false})
        for (bool rhs : {true, false})
          shapes.push_back({.type = type,
                            .columns = columns,
                            .stages = columns == 256 ? 4 : 6,
                            .lhs_is_k_major = lhs,
                            .rhs_is_k_major = rhs});
  for (int64_t columns : {256, 128, 8, 24})
    shapes.push_back({.type = ScalarType::kF32, .columns = columns});
  for (int64_t columns : {256, 96, 24})
    shapes.push_back(
        {.type = columns == 96 ? ScalarType::kU8 : ScalarType::kS8, .columns = columns});
  for (Float8 lhs : {Float8::kE4M3Fn, Float8::kE5M2})
    for (Float8 rhs : {Float8::kE4M3Fn, Float8::kE5M2})
      shapes.push_back({.type = ScalarType::kU8, .columns = 128, .float8 = {lhs, rhs}});
  shapes.push_back(
      {.type = ScalarType::kU8, .columns = 40, .float8 = {Float8::kE4M3Fn, Float8::kE4M3Fn}});
  shapes.push_back({.columns = 128, .stages = 3, .panels = 2});
  shapes.push_back({.columns = 64, .stages = 3, .lhs_is_k_major = false, .panels = 2});
  for (bool rhs : {true, false})
    for (ScalarType type : {ScalarType::kBF16, ScalarType::kF16})
      shapes.push_back(
          {.type = type, .columns = 128, .rhs_is_k_major = rhs, .lhs_in_registers = true});
  return shapes;
}

TEST(CudaAsync, TheTextOfAGemm) {
  CudaSource source = TextOf(Gemm({.rhs_is_k_major = false}));
  EXPECT_TRUE(source.uses_async);
  EXPECT_EQ(source.threads, (std::array<int, 3>{384, 1, 1}));
  EXPECT_EQ(source.dynamic_bytes, 4 * (128 + 256) * 128 + 1024 - 16);
  for (const char* part :
       {"__launch_bounds__(384, 1)", "const __grid_constant__ TensorMap tensor_map_0",
        "const __grid_constant__ TensorMap tensor_map_1", "PrefetchMap(&tensor_map_1);",
        "InitPhases(full, 4, 1);", "InitPhases(empty, 4, 8);", "__syncthreads();",
        "setmaxnreg.dec.sync.aligned.u32 40;", "setmaxnreg.inc.sync.aligned.u32 232;",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
        "mbarrier.arrive.expect_tx", "mbarrier.try_wait.parity", "ArriveExpecting(full + ",
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", "p, 1, 1, 0, 1;",
        "MultiplyN256Bf16KN<4, false, 16384, 8192>(sums + 0, lhs + ", "AwaitMultiplies<1>();",
        "AwaitMultiplies<0>();\n    Settle<128>(sums);", "#pragma unroll 1"})
    EXPECT_TRUE(Has(source, part)) << part << "\n" << source.text;
  EXPECT_FALSE(Has(source, "CopyBox3D"));
  EXPECT_FALSE(Has(source, "MultiplyN128"));
  ASSERT_EQ(source.maps.size(), 2u);
  EXPECT_EQ(source.maps[0].argument, 0u);
  EXPECT_EQ(source.maps[1].argument, 1u);
  EXPECT_TRUE(source.maps[1].swizzled);
  EXPECT_EQ(source.maps[1].dimensions[0], (TensorMapForm::Dimension{4096, 1, 64}));
  EXPECT_EQ(source.maps[1].dimensions[1], (TensorMapForm::Dimension{4096, 4096, 64}));
}

// Whether ptxas serialized wgmma, added waits, or ignored setmaxnreg: "(C7510) ...".
bool HasRemark(const CudaCode& code) {
  return code.log.find("(C7") != std::string::npos ||
         code.log.find("setmaxnreg") != std::string::npos;
}

// Without spills, and without warnings that wgmma is serialized.
TEST(CudaAsync, GemmsCompile) {
  Result<const Nvrtc*> nvrtc = Nvrtc::Open();
  for (const GemmShape& shape : Shapes()) {
    CudaSource source = TextOf(Gemm(shape));
    if (!nvrtc.ok()) continue;
    Result<CudaCode> code = nvrtc.value()->Compile(source, kHopper);
    ASSERT_TRUE(code.ok()) << Render(code.error()) << source.text;
    EXPECT_EQ(code.value().spilled_bytes, 0) << code.value().log;
    EXPECT_FALSE(HasRemark(code.value())) << NameOf(shape) << code.value().log;
    EXPECT_LE(code.value().registers, 168) << NameOf(shape) << code.value().log;
    RecordProperty(NameOf(shape), code.value().registers);
  }
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.error().message;
}

// A warning of ptxas that GemmsCompile would find: sums that are read while they are computed.
TEST(CudaAsync, SerializedMultipliesAreReported) {
  Result<const Nvrtc*> nvrtc = Nvrtc::Open();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.error().message;
  CudaSource source = TextOf(Gemm({}));
  constexpr std::string_view kAwait = "AwaitMultiplies<1>();";
  size_t at = source.text.find(kAwait);
  ASSERT_NE(at, std::string::npos);
  source.text.replace(at, kAwait.size(), "c[threadIdx.x] = sums[5];");
  Result<CudaCode> code = nvrtc.value()->Compile(source, kHopper);
  ASSERT_TRUE(code.ok()) << Render(code.error());
  EXPECT_TRUE(HasRemark(code.value())) << code.value().log;
}

Kernel WithThreads(int64_t registers, int64_t threads) {
  KernelBuilder b("limited");
  ArrayId y = b.Argument(
      {.name = "y", .type = ScalarType::kF32, .access = Access::kWrite, .size = threads});
  b.For("t", LoopRole::kThread, b.Index(threads), [&](Scalar t) {
    b.LimitRegisters(registers);
    b.Store(y, t, b.Constant(ScalarType::kF32, 1));
  });
  return b.Finish();
}

// 512 threads start with 128 registers each.
TEST(CudaAsync, RegisterLimits) {
  EXPECT_TRUE(Has(TextOf(WithThreads(40, 512)), "setmaxnreg.dec.sync.aligned.u32 40;"));
  EXPECT_TRUE(Has(TextOf(WithThreads(184, 512)), "setmaxnreg.inc.sync.aligned.u32 184;"));
  EXPECT_FALSE(Has(TextOf(WithThreads(128, 512)), "setmaxnreg"));
  EXPECT_FALSE(Has(TextOf(WithThreads(40, 128)), "setmaxnreg"));
  EXPECT_FALSE(Has(TextOf(WithThreads(40, 96)), "setmaxnreg"));
}

// A box of 16-bit elements is swizzled by stores of threads: eight lanes of a chunk are one access.
TEST(CudaAsync, SwizzledStoresAreWide) {
  KernelBuilder b("swizzle", Dialect::kGpu);
  ArrayId x = b.Argument(
      {.name = "x", .type = ScalarType::kBF16, .access = Access::kRead, .size = 64 * 64});
  ArrayId to = b.Local("to", ScalarType::kBF16, Space::kShared, 64 * 64, 1024);
  b.For("t", LoopRole::kThread, b.Index(512), [&](Scalar t) {
    Scalar row = t / b.Index(8), chunk = t % b.Index(8);
    b.For("lane", LoopRole::kVector, b.Index(8), [&](Scalar lane) {
      Scalar at = (row * b.Index(8) + (chunk ^ row % b.Index(8))) * b.Index(8) + lane;
      b.Store(to, at, b.Load(x, t * b.Index(8) + lane));
    });
    b.AsyncFence();
  });
  Kernel kernel = b.Finish();
  kernel.index_bits = 32;
  CudaSource source = TextOf(kernel);
  EXPECT_TRUE(Has(source, "*(Vec<unsigned short, 8>*)(to + ")) << source.text;
  EXPECT_TRUE(Has(source, "FenceAsync();"));
  EXPECT_FALSE(Has(source, "TensorMap"));
}

// Only a launch of its own has registers and barriers for asynchronous work.
TEST(CudaAsync, NotWithOtherKernels) {
  Kernel gemm = Gemm({});
  std::vector<HorizontalKernel> entries = {{&gemm, 512}, {&gemm, 512}};
  Result<HorizontalSource> together = HorizontalText("both", entries);
  ASSERT_FALSE(together.ok());
  EXPECT_EQ(together.error().code, ErrorCode::kCudaText);
}

// ---- on a device

// From -4 to 4, or from 0 to 8.
std::vector<double> SmallIntegers(const GemmShape& shape, int64_t count, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<double> values(static_cast<size_t>(count));
  bool is_unsigned = shape.type == ScalarType::kU8 && shape.float8[0] == Float8::kNone;
  for (double& value : values)
    value = static_cast<double>(random.Next() % 9) - (is_unsigned ? 0 : 4);
  return values;
}

std::vector<std::byte> BytesOfValues(ScalarType type, Float8 float8,
                                     const std::vector<double>& values) {
  auto size = static_cast<size_t>(BytesOf(type));
  std::vector<std::byte> bytes(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) {
    Bits bits = float8 == Float8::kE4M3Fn ? EncodeFloat(ElementType::kF8E4M3FN, values[i])
                : float8 == Float8::kE5M2 ? EncodeFloat(ElementType::kF8E5M2, values[i])
                                          : BitsOfDouble(type, values[i]);
    std::memcpy(bytes.data() + i * size, &bits, size);
  }
  return bytes;
}

// A GEMM of small integers, whose sums are exact, on a device.
class GemmRun {
 public:
  GemmRun(Gpu& gpu, const GemmShape& shape) : gpu_(gpu), shape_(shape), kernel_(Gemm(shape)) {
    x_ = SmallIntegers(shape, shape.m * shape.k, 1);
    y_ = SmallIntegers(shape, shape.k * shape.n, 2);
    lhs_ = Filled(BytesOfValues(shape.type, shape.float8[0], x_));
    rhs_ = Filled(BytesOfValues(shape.type, shape.float8[1], y_));
    for (DeviceMemory& result : results_)
      result = Filled(std::vector<std::byte>(static_cast<size_t>(shape.m * shape.n) * 4));
  }

  Result<std::shared_ptr<const LaunchCode>> Load() {
    int64_t tiles = (shape_.m + kRows * shape_.warpgroups - 1) / (kRows * shape_.warpgroups) *
                    ((shape_.n + shape_.columns - 1) / shape_.columns);
    std::vector<LaunchForm> forms = {{"gemm", {{&kernel_, tiles}}}};
    TOK_TRY(auto codes, gpu_.Load(forms));
    return codes[0];
  }
  std::vector<void*> Pointers(size_t result) {
    return {lhs_.data(), rhs_.data(), results_[result].data()};
  }

  // The greatest difference of a result from the product.
  double Error(size_t result) {
    std::vector<uint32_t> sums(static_cast<size_t>(shape_.m * shape_.n));
    EXPECT_TRUE(gpu_.CopyOut(sums.data(), results_[result].data(), sums.size() * 4).ok());
    double error = 0;
    for (int64_t i = 0; i < shape_.m; ++i) {
      for (int64_t j = 0; j < shape_.n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < shape_.k; ++p)
          sum += x_[Place(shape_.lhs_is_k_major, i, shape_.m, p)] *
                 y_[Place(shape_.rhs_is_k_major, j, shape_.n, p)];
        Bits got = sums[static_cast<size_t>(i * shape_.n + j)];
        double number = shape_.SumType() == ScalarType::kS32
                            ? static_cast<double>(IntOfBits(ScalarType::kS32, got))
                            : DoubleOfBits(ScalarType::kF32, got);
        error = std::max(error, std::abs(sum - number));
      }
    }
    return error;
  }

 private:
  size_t Place(bool is_k_major, int64_t i, int64_t size, int64_t p) const {
    return static_cast<size_t>(is_k_major ? i * shape_.k + p : p * size + i);
  }
  DeviceMemory Filled(const std::vector<std::byte>& bytes) {
    DeviceMemory memory = DeviceMemory::Take(gpu_, bytes.size(), "test").value();
    EXPECT_TRUE(gpu_.CopyIn(memory.data(), bytes.data(), bytes.size()).ok());
    return memory;
  }

  Gpu& gpu_;
  GemmShape shape_;
  Kernel kernel_;
  std::vector<double> x_, y_;
  DeviceMemory lhs_, rhs_, results_[2];
};

class AsyncOnDevice : public testing::Test {
 protected:
  void SetUp() override {
    Result<Gpu*> opened = OpenGpu();
    if (!opened.ok()) GTEST_SKIP() << opened.error().message;
    if (opened.value()->info().compute_major != 9) GTEST_SKIP() << "not a Hopper GPU";
    gpu_ = opened.value();
  }
  Gpu* gpu_ = nullptr;
};

// Sizes with tails in all dimensions.
TEST_F(AsyncOnDevice, GemmsEqualTheHost) {
  for (GemmShape shape : Shapes()) {
    shape.m = 328;
    shape.n = 456;
    shape.k = 720;
    GemmRun run(*gpu_, shape);
    auto code = run.Load();
    ASSERT_TRUE(code.ok()) << NameOf(shape) << Render(code.error());
    ASSERT_TRUE(gpu_->Launch(*code.value(), run.Pointers(0)).ok());
    Status done = gpu_->Synchronize();
    ASSERT_TRUE(done.ok()) << NameOf(shape) << Render(done.error());
    EXPECT_EQ(run.Error(0), 0) << NameOf(shape);
  }
}

// The nodes of a graph have maps of their own pointers, also after these have changed.
TEST_F(AsyncOnDevice, GraphsEncodeTheirMaps) {
  GemmShape shape{.m = 256, .n = 512, .k = 512};
  GemmRun run(*gpu_, shape), other(*gpu_, shape);
  auto code = run.Load();
  ASSERT_TRUE(code.ok()) << Render(code.error());
  std::vector<GraphStep> steps(2, {code.value().get(), 3, 0});
  auto graph = gpu_->MakeGraph(steps);
  ASSERT_TRUE(graph.ok());
  for (GemmRun* each : {&run, &other, &run}) {
    std::vector<void*> pointers = each->Pointers(0), second = each->Pointers(1);
    pointers.insert(pointers.end(), second.begin(), second.end());
    ASSERT_TRUE(gpu_->RunGraph(*graph.value(), pointers).ok());
  }
  ASSERT_TRUE(gpu_->Synchronize().ok());
  for (GemmRun* each : {&run, &other})
    for (size_t i : {0, 1}) EXPECT_EQ(each->Error(i), 0);
}

TEST_F(AsyncOnDevice, UnalignedArgumentsAreRejected) {
  GemmRun run(*gpu_, {.m = 128, .n = 256, .k = 64});
  auto code = run.Load();
  ASSERT_TRUE(code.ok()) << Render(code.error());
  std::vector<void*> pointers = run.Pointers(0);
  pointers[0] = static_cast<std::byte*>(pointers[0]) + 2;
  Status status = gpu_->Launch(*code.value(), pointers);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kKernelLaunch);
  EXPECT_TRUE(gpu_->Launch(*code.value(), run.Pointers(0)).ok());
}

}  // namespace
}  // namespace tokamak::cuda
