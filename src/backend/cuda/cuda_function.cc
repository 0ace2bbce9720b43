// The function around the statements: parameters, shared memory, block and thread indices.

#include <algorithm>

#include "backend/cuda/cuda_writer.h"
#include "kernel/cluster.h"
#include "kernel/gpu_limits.h"
#include "kernel/pressure.h"

namespace tokamak::cuda {
namespace {

constexpr int64_t kDynamicAlignment = 16;  // bytes: of dynamic shared memory (CUDA)

}  // namespace

Status CudaWriter::Layout(const StmtList& block) {
  const StmtList* at = &block;
  while (at->size() == 1 && (*at)[0].kind == StmtKind::kFor) {
    const Stmt& stmt = (*at)[0];
    LoopRole role = kernel_.loop(stmt.loop).role;
    if (role == LoopRole::kGrid) grid_.push_back(stmt.loop);
    if (role == LoopRole::kThread) threads_.push_back(stmt.loop);
    if (role != LoopRole::kGrid && role != LoopRole::kThread) break;
    at = &stmt.body;
  }
  source_.cluster = static_cast<int>(ClusterSizeOf(kernel_));
  if (source_.cluster > 1) source_.helpers.insert(Helper::kCluster);
  if (source_.cluster > 1 && device_function_ != nullptr)
    return Unsupported("a cluster cannot be part of a horizontally fused launch");
  for (size_t i = source_.cluster > 1 ? 1 : 0; i < threads_.size(); ++i)
    source_.threads[threads_.size() - 1 - i] =
        static_cast<int>(ConstantOf(kernel_.loop(threads_[i]).extent));
  if (source_.threads[2] > 64)
    return Unsupported(
        fmt::format("{} threads in the third dimension, 64 are allowed", source_.threads[2]));
  TOK_RETURN_IF_ERROR(FindAsyncWork());
  shared_memory_ = SharedMemoryLayoutOf(kernel_, false);
  bool is_much = shared_memory_.bytes > kStaticSharedBytes;
  if (source_.cluster > 1) mbarriers_ = MbarrierPlanOf(kernel_);
  if (mbarriers_) source_.helpers.insert(Helper::kMbarriers);
  // Overlapping arrays need barriers between their lifetimes; mbarriers do not provide that.
  if (is_much && !mbarriers_) shared_memory_ = SharedMemoryLayoutOf(kernel_, true);
  // The base is aligned by hand: the driver aligns it to 16 bytes only.
  bool is_aligned = shared_memory_.alignment > kDynamicAlignment;
  int64_t bytes = shared_memory_.bytes;
  if (is_aligned) bytes += shared_memory_.alignment - kDynamicAlignment;
  if (device_function_ != nullptr || is_much || is_aligned) source_.dynamic_bytes = bytes;
  for (const Array& array : kernel_.arrays)
    if (array.space == Space::kMbarrier) bytes += (array.size + 1) / 2 * 16;
  if (bytes > kMaxSharedBytes)
    return Unsupported(
        fmt::format("{} bytes of shared memory exceed the limit of {}", bytes, kMaxSharedBytes));
  if (device_function_ != nullptr && is_aligned)
    return Unsupported("aligned shared memory in a launch of several kernels");
  if (device_function_ != nullptr && !kernel_.extents.empty())
    return Unsupported("a kernel of a horizontally fused launch must not have extents");
  return Ok();
}

void CudaWriter::Function() {
  std::string parameters;
  auto add = [&](const std::string& text) {
    parameters += (parameters.empty() ? "\n    " : ",\n    ") + text;
  };
  for (size_t i = 0; i < kernel_.ArgumentCount(); ++i) {
    const Array& array = kernel_.arrays[i];
    NoteType(array.type);
    add(fmt::format("{}{}*{} {}", array.access == Access::kRead ? "const " : "", Type(array.type),
                    array.distinct ? " __restrict__" : "", names_.arrays[i]));
  }
  for (const std::string& extent : names_.extents)
    add(fmt::format("const long long {}{}", extent, kernel_.index_bits == 32 ? "_wide" : ""));
  for (size_t i = 0; i < source_.maps.size(); ++i)
    add(fmt::format("const __grid_constant__ TensorMap {}", MapName(i)));
  int block = source_.threads[0] * source_.threads[1] * source_.threads[2];
  if (device_function_ != nullptr) {
    Line(
        "__device__ __forceinline__ void {}(const int block_number, unsigned char* "
        "shared_memory{}{}) {{",
        *device_function_, parameters.empty() ? "" : ",", parameters);
  } else {
    int blocks_per_sm = MinBlocksPerSm(kernel_);
    bool says = blocks_per_sm > 1 || source_.uses_async;  // setmaxnreg needs it
    std::string least = says ? fmt::format(", {}", blocks_per_sm) : "";
    std::string cluster;
    if (source_.cluster > 1) cluster = fmt::format("__cluster_dims__({}, 1, 1) ", source_.cluster);
    Line("extern \"C\" __global__ void {}__launch_bounds__({}{}) {}({}) {{", cluster, block, least,
         names_.kernel, parameters);
  }
  ++depth_;
  if (kernel_.index_bits == 32)
    for (const std::string& extent : names_.extents) Line("const int {0} = (int){0}_wide;", extent);
  SharedArrays();
  for (size_t i = kernel_.ArgumentCount(); i < kernel_.arrays.size(); ++i) Registers(i);
  if (mbarriers_) InitMbarriers();
  if (source_.uses_async) StartAsyncWork();
  if (source_.cluster > 1) Line("ClusterBarrier();");
}

void CudaWriter::InitMbarriers() {
  Line("__shared__ __align__(8) unsigned long long mbarriers[{}];", 2 * mbarriers_->bytes.size());
  Line("if (threadIdx.x == 0) {{");
  ++depth_;
  for (size_t i = 0; i < mbarriers_->bytes.size(); ++i)
    Line("InitMbarriers(mbarriers + {}, {});", 2 * i, mbarriers_->bytes[i]);
  --depth_;
  Line("}}");
}

void CudaWriter::SharedArrays() {
  if (source_.dynamic_bytes > 0 && device_function_ == nullptr) {
    bool is_aligned = shared_memory_.alignment > kDynamicAlignment;
    Line("extern __shared__ __align__(16) unsigned char {}[];",
         is_aligned ? "shared_memory_start" : "shared_memory");
    if (is_aligned)
      Line(
          "unsigned char* const shared_memory =\n"
          "      shared_memory_start + (-(unsigned)__cvta_generic_to_shared(shared_memory_start) & "
          "{}u);",
          shared_memory_.alignment - 1);
  }
  for (size_t i = 0; i < kernel_.arrays.size(); ++i) {
    const Array& array = kernel_.arrays[i];
    if (array.space != Space::kShared) continue;
    NoteType(array.type);
    if (source_.dynamic_bytes > 0) {
      Line("{0}* const {1} = ({0}*)(shared_memory + {2});", Type(array.type), names_.arrays[i],
           shared_memory_.offsets[i]);
    } else {
      Line("__shared__ __align__(16) {} {}[{}];", Type(array.type), names_.arrays[i], array.size);
    }
  }
}

void CudaWriter::Registers(size_t i) {
  const Array& array = kernel_.arrays[i];
  if (array.space != Space::kRegisters) return;
  NoteType(array.type);
  int64_t lanes = divergence_.PerLane(ArrayId{static_cast<uint32_t>(i)}) ? LanesOf(i) : 1;
  if (lanes > 1) {
    Line("{} {}[{}][{}];  // for each lane", Type(array.type), names_.arrays[i], lanes, array.size);
  } else {
    Line("{} {}[{}];", Type(array.type), names_.arrays[i], array.size);
  }
}

int64_t CudaWriter::LanesOf(size_t array) {
  int64_t lanes = 1;
  FindLanes(kernel_.body, 1, array, lanes);
  return lanes;
}

void CudaWriter::FindLanes(const StmtList& block, int64_t around, size_t array,
                           int64_t& lanes) const {
  for (const Stmt& stmt : block) {
    int64_t inner = around;
    if (stmt.kind == StmtKind::kFor && IsVector(kernel_, kernel_.loop(stmt.loop)))
      inner = ConstantOf(kernel_.loop(stmt.loop).extent);
    if (stmt.kind == StmtKind::kStore && static_cast<size_t>(stmt.array) == array && inner > 1)
      lanes = inner;
    for (const StmtList* below : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
      FindLanes(*below, inner, array, lanes);
  }
}

std::string CudaWriter::ThreadIndex(size_t dimension) const {
  if (source_.cluster > 1 && dimension + 1 == threads_.size()) return "ClusterRank()";
  if (device_function_ == nullptr) return fmt::format("threadIdx.{}", "xyz"[dimension]);
  int below = 1;
  for (size_t i = 0; i < dimension; ++i) below *= source_.threads[i];
  std::string value = "(int)threadIdx.x";
  if (below > 1) value += fmt::format(" / {}", below);
  if (dimension + 1 < threads_.size()) value += fmt::format(" % {}", source_.threads[dimension]);
  return value;
}

void CudaWriter::Grid(const Stmt& stmt) {
  std::string value = kernel_.index_bits == 32 ? "(int)blockIdx.x" : "(long long)blockIdx.x";
  if (device_function_ != nullptr)
    value = kernel_.index_bits == 32 ? "block_number" : "(long long)block_number";
  if (source_.cluster > 1) value += fmt::format(" / {}", source_.cluster);
  auto at = static_cast<size_t>(std::ranges::find(grid_, stmt.loop) - grid_.begin());
  std::string inner;
  for (size_t i = at + 1; i < grid_.size(); ++i) {
    inner += (inner.empty() ? "" : " * ") + GridExtent(kernel_.loop(grid_[i]).extent);
  }
  if (!inner.empty()) value = fmt::format("{} / ({})", value, inner);
  if (at > 0) value += fmt::format(" % {}", GridExtent(kernel_.loop(stmt.loop).extent));
  Line("const {} {} = {};", IndexType(), names_.Of(stmt.loop), value);
}

std::string CudaWriter::GridExtent(ValueId id) const {
  const ScalarNode& node = kernel_.node(id);
  if (node.arity() == 0) return Operand(id);
  std::array<std::string, 3> operands;
  for (size_t i = 0; i < static_cast<size_t>(node.arity()); ++i)
    operands[i] = GridExtent(node.operands[i]);
  ScalarType from = kernel_.node(node.operands[0]).type;
  return "(" + spelling_.Prim(node.prim, node.type, from, operands) + ")";
}

}  // namespace tokamak::cuda
