// Asynchronous work (kernel.h, AsyncOp): mbarriers, bulk copies and warpgroup multiplies of sm_90a
// as inline PTX.

#include <algorithm>
#include <string_view>

#include "backend/cuda/cuda_writer.h"
#include "kernel/async.h"
#include "kernel/gpu_limits.h"

namespace tokamak::cuda {
namespace {

constexpr std::string_view kPhasesText = R"(
__device__ __forceinline__ unsigned SharedAddress(const void* at) {
  return (unsigned)__cvta_generic_to_shared(at);
}
__device__ __forceinline__ void InitPhases(unsigned long long* mbarriers, int count, int arrivals) {
  for (int i = 0; i < count; ++i)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
                 ::"r"(SharedAddress(mbarriers + i)), "r"(arrivals) : "memory");
}
// All mbarriers are valid for other threads and for the copy engine after a barrier.
__device__ __forceinline__ void PublishPhases() {
  asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void Arrive(unsigned long long* mbarrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(SharedAddress(mbarrier)) : "memory");
}
__device__ __forceinline__ void ArriveExpecting(unsigned long long* mbarrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               ::"r"(SharedAddress(mbarrier)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void WaitForPhase(unsigned long long* mbarrier, int parity) {
  unsigned done;
  do {
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done) : "r"(SharedAddress(mbarrier)), "r"(parity) : "memory");
  } while (done == 0);
}
// Orders stores to shared memory before later reads by the copy engine and by tensor cores.
__device__ __forceinline__ void FenceAsync() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

)";

constexpr std::string_view kTensorMapsText = R"(
// The driver's CUtensorMap.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};
__device__ __forceinline__ void PrefetchMap(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
// Until at most the last copies back of this thread still read shared memory.
template <int kPending>
__device__ __forceinline__ void AwaitCopiesBack() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}
)";

// The high word of a descriptor is constant: SBO / 16 = 64 in bits 32-45, and the 128-byte swizzle,
// 1, in bits 62-63 (PTX ISA, matrix descriptor).
constexpr std::string_view kWarpgroupText = R"(
// Keeps the compiler from computing these registers later, or from reading them earlier.
template <int N>
__device__ __forceinline__ void Settle(float* values) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(values[i])::"memory");
}
template <int N>
__device__ __forceinline__ void Settle(int* values) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+r"(values[i])::"memory");
}
template <int N>
__device__ __forceinline__ void Settle(unsigned* values) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+r"(values[i])::"memory");
}
// Ends the use of these registers: what is added up in them next begins with zero.
template <int N>
__device__ __forceinline__ void Forget(float* values) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "=f"(values[i]));
}
template <int N>
__device__ __forceinline__ void Forget(int* values) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "=r"(values[i]));
}
__device__ __forceinline__ void BeginMultiplies() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void EndMultiplies() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void AwaitMultiplies() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// The low word of a descriptor: an address in shared memory, and the leading byte offset.
__device__ __forceinline__ unsigned MatrixAt(const void* at, int leading) {
  const unsigned address = (unsigned)__cvta_generic_to_shared(at);
  return (address & 0x3ffffu) >> 4 | (unsigned)leading / 16 << 16;
}
// With 1024 bytes between groups of 8 rows, and a 128-byte swizzle.
__device__ __forceinline__ unsigned long long Descriptor(unsigned low) {
  return 0x4000004000000000ull | low;
}

)";

// Bytes of the depth that one wgmma multiplies.
constexpr int64_t kWgmmaDepthBytes = 32;

std::string_view WgmmaTypeOf(const WarpgroupMultiply& multiply, size_t operand) {
  switch (multiply.float8[operand]) {
    case Float8::kE4M3Fn:
      return "e4m3";
    case Float8::kE5M2:
      return "e5m2";
    case Float8::kNone:
      break;
  }
  switch (multiply.types[operand]) {
    case ScalarType::kBF16:
      return "bf16";
    case ScalarType::kF16:
      return "f16";
    case ScalarType::kF32:
      return "tf32";
    case ScalarType::kS8:
      return "s8";
    case ScalarType::kU8:
      return "u8";
    default:
      return "";
  }
}

// "MultiplyN256Bf16KM": the columns, the type (those of lhs and rhs, if they differ), then lhs (in
// registers R, K-major K, else M) and rhs (K-major K, else N).
std::string NameOf(const WarpgroupMultiply& multiply) {
  std::string type;
  for (size_t i : {0, 1}) {
    std::string of_operand(WgmmaTypeOf(multiply, i));
    of_operand[0] = static_cast<char>(of_operand[0] - 'a' + 'A');
    if (of_operand != type) type += of_operand;
  }
  char lhs = multiply.lhs_in_registers ? 'R' : multiply.lhs_is_k_major ? 'K' : 'M';
  return fmt::format("MultiplyN{}{}{}{}", multiply.columns, type, lhs,
                     multiply.rhs_is_k_major ? 'K' : 'N');
}

// The statement of one wgmma on `sums`, with the operands `x` and `y` and `keeps` in scope.
std::string InstructionOf(const WarpgroupMultiply& multiply) {
  int64_t bytes = BytesOf(multiply.types[0]), sums = multiply.columns / 2;
  bool is_integer = multiply.IsInteger();
  std::string registers, outputs;
  for (int64_t i = 0; i < sums; ++i) {
    std::string_view comma = i == 0 ? "" : i % 8 == 0 ? ", \"\n      \"" : ", ";
    registers += fmt::format("{}%{}", comma, i);
    outputs += fmt::format("{}\"+{}\"(sums[{}])",
                           i == 0       ? ""
                           : i % 4 == 0 ? ",\n        "
                                        : ", ",
                           is_integer ? "r" : "f", i);
  }
  int64_t next = sums;
  std::string lhs, inputs;
  if (multiply.lhs_in_registers) {
    lhs = fmt::format("{{%{}, %{}, %{}, %{}}}", next, next + 1, next + 2, next + 3);
    inputs = "\"r\"(x[0]), \"r\"(x[1]), \"r\"(x[2]), \"r\"(x[3])";
    next += 4;
  } else {
    lhs = fmt::format("%{}", next++);
    inputs = "\"l\"(Descriptor(x))";
  }
  std::string transposes;
  if (!is_integer) transposes = ", 1, 1";
  if (bytes == 2 && !multiply.lhs_in_registers)
    transposes += multiply.lhs_is_k_major ? ", 0" : ", 1";
  if (bytes == 2) transposes += multiply.rhs_is_k_major ? ", 0" : ", 1";
  return fmt::format(
      "  asm volatile(\n"
      "      \"{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{}, 0;\\n\"\n"
      "      \"wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{} {{\"\n"
      "      \"{}\"\n"
      "      \"}}, {}, %{}, p{};\\n}}\"\n"
      "      : {}\n"
      "      : {}, \"l\"(Descriptor(y)), \"r\"(keeps));\n",
      next + 1, multiply.columns, kWgmmaDepthBytes / bytes, is_integer ? "s32" : "f32",
      WgmmaTypeOf(multiply, 0), WgmmaTypeOf(multiply, 1), registers, lhs, next, transposes, outputs,
      inputs);
}

// 16 bytes from an instruction to the next along the depth.
std::string StepOf(bool is_k_major, std::string_view panel) {
  // 16 rows of 128 bytes; or 32 bytes in a row of 128 bytes.
  if (!is_k_major) return "i * 128";
  return fmt::format("i / 4 * ({} / 16) + i % 4 * 2", panel);
}

std::string LeadingOf(bool is_k_major, std::string_view panel) {
  return is_k_major ? "16" : std::string(panel);  // K-major: the hardware ignores it
}

// A copy back is a group of its own, so that a wait counts copies.
std::string CopyBackText(size_t rank, std::string_view parameters) {
  std::string inputs, operands;
  for (size_t i = 0; i < rank; ++i) {
    inputs += fmt::format(", \"r\"(at{})", i);
    operands += fmt::format("{}%{}", i == 0 ? "" : ", ", i + 2);
  }
  return fmt::format(
      "__device__ __forceinline__ void CopyBoxBack{0}D(const TensorMap* map, const void* from"
      "{1}) {{\n"
      "  asm volatile(\n"
      "      \"cp.async.bulk.tensor.{0}d.global.shared::cta.tile.bulk_group [%0, {{{2}}}], "
      "[%1];\\n\"\n"
      "      \"cp.async.bulk.commit_group;\"\n"
      "      ::\"l\"(map), \"r\"(SharedAddress(from)){3} : \"memory\");\n"
      "}}\n",
      rank, parameters, operands, inputs);
}

}  // namespace

std::string_view PhasesText() {
  return kPhasesText;
}

std::string TensorMapsText(const CudaSource& source) {
  std::string text(kTensorMapsText);
  std::set<size_t> ranks;
  for (const TensorMapForm& form : source.maps) ranks.insert(form.dimensions.size());
  for (size_t rank : ranks) {
    std::string parameters, inputs, operands;
    for (size_t i = 0; i < rank; ++i) {
      parameters += fmt::format(", int at{}", i);
      inputs += fmt::format(", \"r\"(at{})", i);
      operands += fmt::format("{}%{}", i == 0 ? "" : ", ", i + 3);
    }
    text += CopyBackText(rank, parameters);
    text += fmt::format(
        "__device__ __forceinline__ void CopyBox{0}D(void* to, const TensorMap* map,\n"
        "                                          unsigned long long* mbarrier{1}) {{\n"
        "  asm volatile(\n"
        "      \"cp.async.bulk.tensor.{0}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        " \"\n"
        "      \"[%0], [%1, {{{2}}}], [%2];\"\n"
        "      ::\"r\"(SharedAddress(to)), \"l\"(map), \"r\"(SharedAddress(mbarrier)){3} : "
        "\"memory\");\n"
        "}}\n",
        rank, parameters, operands, inputs);
  }
  return text + "\n";
}

std::string WarpgroupMultiplyText(const CudaSource& source) {
  std::string text(kWarpgroupText);
  for (const WarpgroupMultiply& multiply : source.multiplies) {
    std::string name = NameOf(multiply);
    std::string_view sum = multiply.IsInteger() ? "int" : "float";
    bool pairs = multiply.lhs_in_registers;
    text += fmt::format(
        "// 64 x {0} sums of a warpgroup. Panels are {1} bytes apart.\n"
        "__device__ __forceinline__ void {2}({3}* sums, {4}, unsigned y, int keeps) {{\n{5}}}\n",
        multiply.columns, "kLhsPanel and kRhsPanel", name, sum,
        pairs ? "const unsigned* x" : "unsigned x", InstructionOf(multiply));
    text += fmt::format(
        "template <int kSteps, bool kOverwrite, int kLhsPanel, int kRhsPanel>\n"
        "__device__ __forceinline__ void {}({}* sums, {}, const void* rhs) {{\n",
        name, sum, pairs ? "const unsigned short* lhs" : "const void* lhs");
    if (pairs)
      text +=
          "  unsigned x[4 * kSteps];\n"
          "#pragma unroll\n"
          "  for (int i = 0; i < 4 * kSteps; ++i)\n"
          "    x[i] = (unsigned)lhs[2 * i] | (unsigned)lhs[2 * i + 1] << 16;\n"
          "  Settle<4 * kSteps>(x);\n";
    else
      text += fmt::format("  const unsigned x = MatrixAt(lhs, {});\n",
                          LeadingOf(multiply.lhs_is_k_major, "kLhsPanel"));
    text += fmt::format(
        "  const unsigned y = MatrixAt(rhs, {});\n"
        "  if (kOverwrite) Forget<{}>(sums);\n"
        "  Settle<{}>(sums);\n"
        "  BeginMultiplies();\n"
        "#pragma unroll\n"
        "  for (int i = 0; i < kSteps; ++i)\n"
        "    {}(sums, {}, y + {}, !kOverwrite || i > 0);\n"
        "  EndMultiplies();\n"
        "}}\n\n",
        LeadingOf(multiply.rhs_is_k_major, "kRhsPanel"), multiply.columns / 2, multiply.columns / 2,
        name, pairs ? "x + 4 * i" : "x + " + StepOf(multiply.lhs_is_k_major, "kLhsPanel"),
        StepOf(multiply.rhs_is_k_major, "kRhsPanel"));
  }
  return text;
}

Status CudaWriter::FindAsyncWork() {
  if (!UsesAsync(kernel_)) return Ok();
  source_.uses_async = true;
  source_.helpers.insert(Helper::kPhases);
  if (device_function_ != nullptr)
    return Unsupported("asynchronous work cannot be part of a launch of several kernels");
  if (source_.cluster > 1) return Unsupported("asynchronous work of a cluster");
  return FindTensorMaps(kernel_.body);
}

Status CudaWriter::FindTensorMaps(const StmtList& block) {
  for (const Stmt& stmt : block) {
    if (stmt.kind == StmtKind::kAsync && HasCopy(stmt.async->kind)) {
      TOK_TRY(TensorMapForm form, TensorMapFormOf(kernel_, stmt.async->copy));
      auto known = std::ranges::find(source_.maps, form);
      map_of_.emplace(stmt.async.get(), known - source_.maps.begin());
      if (known == source_.maps.end()) source_.maps.push_back(std::move(form));
    }
    for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
      TOK_RETURN_IF_ERROR(FindTensorMaps(*inner));
  }
  if (!source_.maps.empty()) source_.helpers.insert(Helper::kTensorMaps);
  return Ok();
}

// A name that no other parameter has.
std::string CudaWriter::MapName(size_t map) const {
  std::string name = fmt::format("tensor_map_{}", map);
  auto is_taken = [&](const std::vector<std::string>& names) {
    return std::ranges::find(names, name) != names.end();
  };
  while (is_taken(names_.arrays) || is_taken(names_.extents) || is_taken(names_.loops)) name += '_';
  return name;
}

// One thread initializes the mbarriers, and fetches the tensor maps.
void CudaWriter::StartAsyncWork() {
  std::string is_first = "threadIdx.x == 0";
  for (size_t i = 1; i < 3; ++i)
    if (source_.threads[i] > 1) is_first += fmt::format(" && threadIdx.{} == 0", "xyz"[i]);
  bool has_mbarriers = false;
  for (size_t i = 0; i < kernel_.arrays.size(); ++i) {
    const Array& array = kernel_.arrays[i];
    if (array.space != Space::kMbarrier) continue;
    has_mbarriers = true;
    Line("__shared__ __align__(8) unsigned long long {}[{}];", names_.arrays[i], array.size);
  }
  if (!has_mbarriers) return;
  Line("if ({}) {{", is_first);
  ++depth_;
  for (size_t i = 0; i < source_.maps.size(); ++i) Line("PrefetchMap(&{});", MapName(i));
  for (size_t i = 0; i < kernel_.arrays.size(); ++i)
    if (const Array& array = kernel_.arrays[i]; array.space == Space::kMbarrier)
      Line("InitPhases({}, {}, {});", names_.arrays[i], array.size, array.arrivals);
  Line("PublishPhases();");
  --depth_;
  Line("}}");
  Line("__syncthreads();");
}

void CudaWriter::Async(const Stmt& stmt) {
  if (in_vector_) return Fail("asynchronous work in a vector loop");
  const AsyncOp& op = *stmt.async;
  std::string mbarrier;
  if (HasMbarrier(op.kind)) mbarrier = names_.Of(stmt.array) + " + " + Operand(stmt.index);
  switch (op.kind) {
    case AsyncKind::kArrive:
      if (op.number == 0) return Line("Arrive({});", mbarrier);
      return Line("ArriveExpecting({}, {});", mbarrier, op.number);
    case AsyncKind::kWait:
      return Line("WaitForPhase({}, (int){});", mbarrier, Operand(op.parity));
    case AsyncKind::kCopy: {
      std::string at;
      for (const TileCopy::Dimension& dimension : op.copy.dimensions)
        at += ", (int)" + Operand(dimension.at);
      return Line("CopyBox{}D({} + {}, &{}, {}{});", op.copy.dimensions.size(),
                  names_.Of(op.copy.to), Operand(op.copy.to_index), MapName(map_of_.at(&op)),
                  mbarrier, at);
    }
    case AsyncKind::kCopyBack: {
      std::string at;
      for (const TileCopy::Dimension& dimension : op.copy.dimensions)
        at += ", (int)" + Operand(dimension.at);
      return Line("CopyBoxBack{}D(&{}, {} + {}{});", op.copy.dimensions.size(),
                  MapName(map_of_.at(&op)), names_.Of(op.copy.from), Operand(op.copy.from_index),
                  at);
    }
    case AsyncKind::kWaitCopies:
      return Line("AwaitCopiesBack<{}>();", op.number);
    case AsyncKind::kWaitMultiplies:
      source_.helpers.insert(Helper::kWarpgroupMultiply);
      // The compiler could read the sums before the wait, because it does not know that the wait
      // concerns them.
      Line("AwaitMultiplies<{}>();", PendingMultiplies(stmt));
      return Line("Settle<{}>({});", kernel_.array(stmt.array).size, names_.Of(stmt.array));
    case AsyncKind::kFence:
      return Line("FenceAsync();");
    case AsyncKind::kRegisters:
      return LimitRegisters(op.number);
  }
}

// How many multiplies may be unfinished after an await. wgmma counts those into other registers
// too, but only those that were issued after the awaited ones matter.
int64_t CudaWriter::PendingMultiplies(const Stmt& await) const {
  constexpr size_t kMostPending = 7;  // PTX ISA, wgmma.wait_group
  int64_t left = await.async->number;
  for (size_t i = issued_.size(); i-- > 0;)
    if (issued_[i] == await.array && left-- == 0)
      return static_cast<int64_t>(std::min(issued_.size() - 1 - i, kMostPending));
  return await.async->number;
}

// A warpgroup gives registers back, or takes some that others have given back. Omitted where the
// launch does not divide the registers of an SM as setmaxnreg requires.
void CudaWriter::LimitRegisters(int64_t registers) {
  constexpr int64_t kRegistersPerSm = 65536, kStep = 8;  // CUDA programming guide
  constexpr int64_t kMostPerThread = 255;
  int64_t threads = int64_t{1} * source_.threads[0] * source_.threads[1] * source_.threads[2];
  int64_t launched = kRegistersPerSm / threads / kStep * kStep;
  bool is_valid = threads % MatrixMultiply::kWarpgroupThreads == 0 && launched <= kMostPerThread;
  if (!is_valid || registers == launched) return;
  Line("asm volatile(\"setmaxnreg.{}.sync.aligned.u32 {};\");",
       registers < launched ? "dec" : "inc", registers);
}

void CudaWriter::AsyncMultiply(const Stmt& stmt) {
  const MatrixMultiply& product = stmt.matmul;
  const Array& lhs = kernel_.array(product.lhs);
  int64_t bytes = BytesOf(lhs.type), depth = ConstantOf(product.depth);
  WarpgroupMultiply multiply{.types = {lhs.type, kernel_.array(product.rhs).type},
                             .float8 = product.float8,
                             .columns = product.columns,
                             .lhs_in_registers = lhs.space == Space::kRegisters,
                             .lhs_is_k_major = product.LhsIsKMajor(),
                             .rhs_is_k_major = product.RhsIsKMajor()};
  if (multiply.lhs_in_registers) multiply.lhs_is_k_major = true;
  int threads = source_.threads[0] * source_.threads[1] * source_.threads[2];
  if (threads % MatrixMultiply::kWarpgroupThreads != 0)
    return Fail(fmt::format("an asynchronous multiply in a block of {} threads", threads));
  source_.helpers.insert(Helper::kWarpgroupMultiply);
  source_.multiplies.insert(multiply);
  issued_.push_back(stmt.array);
  Line("{}<{}, {}, {}, {}>({} + {}, {} + {}, {} + {});", NameOf(multiply),
       depth * bytes / kWgmmaDepthBytes, product.overwrite, product.lhs_panel * bytes,
       product.rhs_panel * bytes, names_.Of(stmt.array), Operand(stmt.index),
       names_.Of(product.lhs), Operand(product.lhs_index), names_.Of(product.rhs),
       Operand(product.rhs_index));
}

}  // namespace tokamak::cuda
