// A loop whose rounds need each other's data as one CUDA C++ kernel. As many teams as the device
// runs at a time stay for all rounds; each does every so manieth team of a phase, and where a phase
// needs what others made all of them meet: each adds one to a counter, and waits for all others.
//
// What one round writes another reads, so nothing may be taken for constant that a kernel by itself
// only reads: pointers come out of a table, and loads are plain ones. A meeting is a fence for the
// whole device, after which no load finds an old line in a cache.
//
// Kernels that run side by side take up their teams one after the other, as those of a pack do.
//
// Rounds go through the teams of a phase forth and back: what was written last is in the cache yet.

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "backend/cuda/cuda_prims.h"
#include "backend/cuda/cuda_text.h"
#include "kernel/form.h"
#include "kernel/names.h"

namespace tokamak::cuda {
namespace {

constexpr int kLoopWarp = 32;
constexpr int64_t kLoopStaticTeamBytes = 48 << 10;

constexpr std::string_view kFunctions = R"(
// Who finds the count of arrivals complete sees what all wrote before they came. Counts may wrap.
__device__ __forceinline__ void Meet(unsigned* const meeting, unsigned& wanted) {
  wanted += gridDim.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(meeting) : "memory");
    unsigned there;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(there) : "l"(meeting) : "memory");
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
  LoopWriter(const std::string& name, std::span<const CudaPackPart> parts, const LoopShape& shape)
      : name_(IdentifierFrom(name)),
        parts_(parts),
        shape_(shape),
        pointers_(PointersOf(shape, parts)) {}

  Result<CudaSource> Write() {
    std::vector<CudaSource> functions;
    for (const CudaPackPart& part : parts_) {
      auto [at, is_new] = function_of_.try_emplace(FormOf(*part.kernel), functions.size());
      numbers_.push_back(at->second);
      if (!is_new) continue;
      TOK_TRY(CudaSource source, CudaPartText(*part.kernel, fmt::format("part_{}", at->second)));
      functions.push_back(std::move(source));
    }
    for (const CudaSource& function : functions) {
      threads_.push_back(function.threads[0] * function.threads[1] * function.threads[2]);
      most_threads_ = std::max(most_threads_, threads_.back());
      team_bytes_.push_back(function.dynamic_bytes);
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
    made_.dynamic_bytes = most_bytes_ > kLoopStaticTeamBytes ? most_bytes_ : 0;
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

  // Threads beyond a part's own do not come to its barriers. A team within one warp meets as
  // lanes of that warp do: a barrier counts whole warps, and waits for the others for ever.
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
            fmt::format("loop {}: a team of {} threads with barriers among others of {}", name_,
                        threads, most_threads_));
      text.replace(at, kAll.size(), own);
      at += own.size();
    }
    return text;
  }

  void Kernel() {
    Line(
        "extern \"C\" __global__ void __launch_bounds__({}) {}(\n    const __grid_constant__ "
        "Pointers pointers, unsigned* const meeting, const long long rounds,\n    const int odd, "
        "const int closes) {{",
        most_threads_, name_);
    ++depth_;
    if (made_.dynamic_bytes > 0)
      Line("extern __shared__ __align__(16) unsigned char team_memory[];");
    else
      Line("__shared__ __align__(16) unsigned char team_memory[{}];",
           std::max<int64_t>(most_bytes_, 16));
    Line("unsigned wanted = 0;");
    Line("bool goes_on = true;");
    Line("long long round = 0;");
    Line("for (; round < rounds; ++round) {{");
    ++depth_;
    Line("const bool back = ((round + odd) & 1) != 0;");
    if (shape_.in_turn)
      Line("void* const* const at = pointers.at + (back ? {} : 0);", pointers_.round);
    else
      Line("void* const* const at = pointers.at;");
    Phases(shape_.condition);
    if (shape_.has_condition()) {
      AddMeeting();
      Line("goes_on = *(const volatile unsigned char*)at[{}] != 0;", pointer_++);
      Line("if (!goes_on) break;");
    }
    Phases(shape_.body);
    AddMeeting();
    --depth_;
    Line("}}");
    if (!shape_.closing.empty()) {
      pointer_ = 0;
      Line("if ((!goes_on || closes) && ((round + odd) & 1) != 0) {{");
      ++depth_;
      Line("void* const* const at = pointers.at + {};", pointers_.all - pointers_.closing);
      Phases(shape_.closing);
      --depth_;
      Line("}}");
    }
    Line("if (blockIdx.x == 0 && threadIdx.x == 0) {{");
    Line("  *(long long*)(meeting + {}) = round;", kLoopMemory / 4 - 4);
    Line("  *(long long*)(meeting + {}) = goes_on ? 0 : 1;", kLoopMemory / 4 - 2);
    Line("}}");
    --depth_;
    Line("}}");
  }

  void AddMeeting() {
    Line("Meet(meeting, wanted);");
    teams_ = 0;
  }

  void Phases(const std::vector<LoopShape::Phase>& phases) {
    for (const LoopShape::Phase& phase : phases) {
      if (phase.meets) AddMeeting();
      if (phase.parts == 0) {
        Line("CopyAll(at[{}], at[{}], {});", pointer_, pointer_ + 1, phase.bytes);
        pointer_ += 2;
      }
      for (size_t i = 0; i < phase.parts; ++i) Part(next_part_++);
    }
  }

  void Part(size_t number) {
    const CudaPackPart& part = parts_[number];
    size_t function = numbers_[number];
    std::string first = "blockIdx.x";
    if (teams_ > 0)
      first = fmt::format("(blockIdx.x + gridDim.x - {}u % gridDim.x) % gridDim.x", teams_);
    teams_ += part.teams;
    Line("for (int next = {}; next < {}; next += gridDim.x) {{", first, part.teams);
    ++depth_;
    Line("const int team = back ? {} - next : next;", part.teams - 1);
    std::string call = fmt::format("part_{}(team, team_memory", function);
    for (size_t i = 0; i < part.kernel->ArgumentCount(); ++i) {
      const Array& array = part.kernel->arrays[i];
      call += fmt::format(", ({}{}*)at[{}]", array.access == Access::kRead ? "const " : "",
                          Spelling(part.kernel->index_bits).Type(array.type), pointer_++);
    }
    bool is_less = threads_[function] < most_threads_;
    if (is_less) Line("if (threadIdx.x < {})", threads_[function]);
    Line("{}{});", is_less ? "  " : "", call);
    // The next team has the same memory.
    if (team_bytes_[function] > 0) Line("__syncthreads();");
    --depth_;
    Line("}}");
  }

  std::string name_;
  std::span<const CudaPackPart> parts_;
  const LoopShape& shape_;
  LoopPointers pointers_;
  CudaSource made_;
  std::unordered_map<std::string, size_t> function_of_;  // by the form of a kernel
  std::vector<size_t> numbers_;                          // of each part's function
  std::vector<int> threads_;                             // by function
  std::vector<int64_t> team_bytes_;
  int most_threads_ = kLoopWarp, depth_ = 0;
  int64_t most_bytes_ = 0;
  int64_t teams_ = 0;  // since the last meeting
  size_t next_part_ = 0, pointer_ = 0;
  std::string text_;
};

}  // namespace

LoopPointers PointersOf(const LoopShape& shape, std::span<const CudaPackPart> parts) {
  size_t next = 0;
  auto count = [&](const std::vector<LoopShape::Phase>& phases) {
    size_t sum = 0;
    for (const LoopShape::Phase& phase : phases) {
      if (phase.parts == 0) sum += 2;
      for (size_t i = 0; i < phase.parts; ++i) sum += parts[next++].kernel->ArgumentCount();
    }
    return sum;
  };
  LoopPointers pointers;
  pointers.condition = count(shape.condition);
  pointers.round = pointers.condition + (shape.has_condition() ? 1 : 0) + count(shape.body);
  pointers.closing = count(shape.closing);
  pointers.all = pointers.round * (shape.in_turn ? 2 : 1) + pointers.closing;
  return pointers;
}

Result<CudaSource> CudaLoopText(const std::string& name, std::span<const CudaPackPart> parts,
                                const LoopShape& shape) {
  return LoopWriter(name, parts, shape).Write();
}

}  // namespace tokamak::cuda
