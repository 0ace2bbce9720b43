// A loop whose iterations depend on each other across the batch, as one persistent cooperative
// kernel in CUDA C++ (LoopShape in cuda_text.h). As many thread blocks as are resident at once run
// all iterations. Each phase is a grid-stride loop over the blocks of its kernels. A grid barrier
// precedes a phase that reads what other blocks wrote: each block increments a global counter, and
// waits until the counter has reached the number of all blocks.
//
// One iteration reads what another writes, so data that a kernel alone only reads is not constant
// here: pointers come from a table, and loads are ordinary ones (no ld.global.nc). The barrier is a
// device-wide fence, so no later load hits a stale cache line.
//
// Kernels that run concurrently in one phase have consecutive block ranges, as in a horizontally
// fused launch.
//
// Successive iterations traverse the blocks of a phase in alternating directions: the data written
// last is still in the cache.

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "backend/cuda/cuda_prims.h"
#include "backend/cuda/cuda_text.h"
#include "kernel/form.h"
#include "kernel/gpu_limits.h"
#include "kernel/names.h"

namespace tokamak::cuda {
namespace {

// Threads of a warp (CUDA programming guide).
constexpr int kLoopWarp = 32;

constexpr std::string_view kFunctions = R"(
// A block that sees the counter complete sees all writes before the barrier. The counter may wrap.
__device__ __forceinline__ void GridBarrier(unsigned* const barrier, unsigned& wanted) {
  wanted += gridDim.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(barrier) : "memory");
    unsigned there;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(there) : "l"(barrier) : "memory");
    } while ((int)(there - wanted) < 0);
  }
  __syncthreads();
}

__device__ __forceinline__ void CopyAll(void* to, const void* from, const long long bytes) {
  const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const long long all = (long long)gridDim.x * blockDim.x;
  const long long wide = (((unsigned long long)to | (unsigned long long)from) & 15) == 0 ? bytes / 16 : 0;
  for (long long i = first; i < wide; i += all) ((uint4*)to)[i] = ((const uint4*)from)[i];
  for (long long i = wide * 16 + first; i < bytes; i += all) ((char*)to)[i] = ((const char*)from)[i];
}

)";

class LoopWriter {
 public:
  LoopWriter(const std::string& name, std::span<const HorizontalKernel> entries,
             const LoopShape& shape)
      : name_(IdentifierFrom(name)),
        entries_(entries),
        shape_(shape),
        pointers_(PointersOf(shape, entries)) {}

  Result<CudaSource> Write() {
    std::vector<CudaSource> functions;
    for (const HorizontalKernel& entry : entries_) {
      auto [at, is_new] = function_of_.try_emplace(FormOf(*entry.kernel), functions.size());
      numbers_.push_back(at->second);
      if (!is_new) continue;
      TOK_TRY(CudaSource source,
              DeviceFunctionText(*entry.kernel, fmt::format("entry_{}", at->second)));
      functions.push_back(std::move(source));
    }
    for (const CudaSource& function : functions) {
      threads_.push_back(function.threads[0] * function.threads[1] * function.threads[2]);
      most_threads_ = std::max(most_threads_, threads_.back());
      shared_bytes_.push_back(function.dynamic_bytes);
      most_bytes_ = std::max(most_bytes_, function.dynamic_bytes);
      made_.helpers.insert(function.helpers.begin(), function.helpers.end());
    }
    std::string texts;
    for (size_t i = 0; i < functions.size(); ++i) {
      TOK_TRY(std::string text, WithBarriers(functions[i].text, i));
      texts += text + "\n";
    }
    made_.name = name_;
    made_.threads[0] = most_threads_;
    made_.dynamic_bytes = most_bytes_ > kStaticSharedBytes ? most_bytes_ : 0;
    Kernel();
    made_.text = "// A loop in one launch.\n\n" + Prelude(made_) + texts + std::string(kFunctions) +
                 fmt::format("struct Pointers {{\n  void* at[{}];\n}};\n\n",
                             std::max<size_t>(pointers_.all, 1)) +
                 text_;
    return std::move(made_);
  }

 private:
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    text_.append(static_cast<size_t>(depth_) * 2, ' ');
    text_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }

  // Threads beyond an entry's own do not reach its barriers, so __syncthreads() becomes a named
  // barrier of its threads. A block within one warp uses __syncwarp: a named barrier counts whole
  // warps and would wait forever for the other lanes.
  Result<std::string> WithBarriers(std::string text, size_t function) const {
    constexpr std::string_view kAll = "__syncthreads();";
    int threads = threads_[function];
    if (threads == most_threads_) return text;
    std::string own =
        threads < kLoopWarp
            ? fmt::format("__syncwarp({:#x}u);", (1u << threads) - 1)
            : fmt::format("asm volatile(\"bar.sync 1, {};\" ::: \"memory\");", threads);
    for (size_t at = text.find(kAll); at != std::string::npos; at = text.find(kAll, at)) {
      if (threads > kLoopWarp && threads % kLoopWarp != 0)
        return MakeError(
            ErrorCode::kCudaText,
            fmt::format("loop {}: a block of {} threads with barriers among others of {}", name_,
                        threads, most_threads_));
      text.replace(at, kAll.size(), own);
      at += own.size();
    }
    return text;
  }

  // The loop over iterations. Every block evaluates the same condition byte after a grid barrier,
  // so all leave together. The barrier at the end of an iteration separates its writes from the
  // reads of the next.
  void Kernel() {
    Line(
        "extern \"C\" __global__ void __launch_bounds__({}) {}(\n    const __grid_constant__ "
        "Pointers pointers, unsigned* const barrier, const long long iterations,\n    const int "
        "odd, "
        "const int closes) {{",
        most_threads_, name_);
    ++depth_;
    if (made_.dynamic_bytes > 0)
      Line("extern __shared__ __align__(16) unsigned char shared_memory[];");
    else
      Line("__shared__ __align__(16) unsigned char shared_memory[{}];",
           std::max<int64_t>(most_bytes_, 16));
    Line("unsigned wanted = 0;");
    Line("bool goes_on = true;");
    Line("long long iteration = 0;");
    Line("for (; iteration < iterations; ++iteration) {{");
    ++depth_;
    Line("const bool back = ((iteration + odd) & 1) != 0;");
    if (shape_.alternates_buffers)
      Line("void* const* const at = pointers.at + (back ? {} : 0);", pointers_.iteration);
    else
      Line("void* const* const at = pointers.at;");
    Phases(shape_.condition);
    if (shape_.has_condition()) {
      AddGridBarrier();
      Line("goes_on = *(const volatile unsigned char*)at[{}] != 0;", pointer_++);
      Line("if (!goes_on) break;");
    }
    Phases(shape_.body);
    AddGridBarrier();
    --depth_;
    Line("}}");
    if (!shape_.closing.empty()) {
      pointer_ = 0;
      Line("if ((!goes_on || closes) && ((iteration + odd) & 1) != 0) {{");
      ++depth_;
      Line("void* const* const at = pointers.at + {};", pointers_.all - pointers_.closing);
      Phases(shape_.closing);
      --depth_;
      Line("}}");
    }
    Line("if (blockIdx.x == 0 && threadIdx.x == 0) {{");
    Line("  *(long long*)(barrier + {}) = iteration;", kLoopMemory / 4 - 4);
    Line("  *(long long*)(barrier + {}) = goes_on ? 0 : 1;", kLoopMemory / 4 - 2);
    Line("}}");
    --depth_;
    Line("}}");
  }

  void AddGridBarrier() {
    Line("GridBarrier(barrier, wanted);");
    blocks_ = 0;
  }

  void Phases(const std::vector<LoopShape::Phase>& phases) {
    for (const LoopShape::Phase& phase : phases) {
      if (phase.needs_barrier) AddGridBarrier();
      if (phase.entries == 0) {
        Line("CopyAll(at[{}], at[{}], {});", pointer_, pointer_ + 1, phase.bytes);
        pointer_ += 2;
      }
      for (size_t i = 0; i < phase.entries; ++i) EmitEntry(next_entry_++);
    }
  }

  void EmitEntry(size_t number) {
    const HorizontalKernel& entry = entries_[number];
    size_t function = numbers_[number];
    std::string first = "blockIdx.x";
    if (blocks_ > 0)
      first = fmt::format("(blockIdx.x + gridDim.x - {}u % gridDim.x) % gridDim.x", blocks_);
    blocks_ += entry.blocks;
    Line("for (int next = {}; next < {}; next += gridDim.x) {{", first, entry.blocks);
    ++depth_;
    Line("const int block = back ? {} - next : next;", entry.blocks - 1);
    std::string call = fmt::format("entry_{}(block, shared_memory", function);
    for (size_t i = 0; i < entry.kernel->ArgumentCount(); ++i) {
      const Array& array = entry.kernel->arrays[i];
      call += fmt::format(", ({}{}*)at[{}]", array.access == Access::kRead ? "const " : "",
                          Spelling(entry.kernel->index_bits).Type(array.type), pointer_++);
    }
    bool is_less = threads_[function] < most_threads_;
    if (is_less) Line("if (threadIdx.x < {})", threads_[function]);
    Line("{}{});", is_less ? "  " : "", call);
    // The next block reuses the shared memory.
    if (shared_bytes_[function] > 0) Line("__syncthreads();");
    --depth_;
    Line("}}");
  }

  std::string name_;
  std::span<const HorizontalKernel> entries_;
  const LoopShape& shape_;
  LoopPointers pointers_;
  CudaSource made_;
  std::unordered_map<std::string, size_t> function_of_;  // by the form of a kernel
  std::vector<size_t> numbers_;                          // of each entry's function
  std::vector<int> threads_;                             // per function
  std::vector<int64_t> shared_bytes_;
  int most_threads_ = kLoopWarp, depth_ = 0;
  int64_t most_bytes_ = 0;
  int64_t blocks_ = 0;  // since the last barrier
  size_t next_entry_ = 0, pointer_ = 0;
  std::string text_;
};

}  // namespace

LoopPointers PointersOf(const LoopShape& shape, std::span<const HorizontalKernel> entries) {
  size_t next = 0;
  auto count = [&](const std::vector<LoopShape::Phase>& phases) {
    size_t sum = 0;
    for (const LoopShape::Phase& phase : phases) {
      if (phase.entries == 0) sum += 2;
      for (size_t i = 0; i < phase.entries; ++i) sum += entries[next++].kernel->ArgumentCount();
    }
    return sum;
  };
  LoopPointers pointers;
  pointers.condition = count(shape.condition);
  pointers.iteration = pointers.condition + (shape.has_condition() ? 1 : 0) + count(shape.body);
  pointers.closing = count(shape.closing);
  pointers.all = pointers.iteration * (shape.alternates_buffers ? 2 : 1) + pointers.closing;
  return pointers;
}

Result<CudaSource> CudaLoopText(const std::string& name, std::span<const HorizontalKernel> entries,
                                const LoopShape& shape) {
  return LoopWriter(name, entries, shape).Write();
}

}  // namespace tokamak::cuda
