// Packs of kernels as one CUDA C++ kernel. A block looks up which kernel it is a team of, and which
// of its teams; the kernels are functions of the device.

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "backend/cuda/cuda_prims.h"
#include "backend/cuda/cuda_text.h"
#include "kernel/hash.h"
#include "kernel/names.h"

namespace tokamak::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int64_t kStaticTeamBytes = 48 << 10;
// What parameters of a launch may take, on every device and with every driver: 4 KiB.
constexpr size_t kMostPointers = 500;

class PackWriter {
 public:
  PackWriter(const std::string& name, std::span<const CudaPackPart> parts)
      : name_(IdentifierFrom(name)), parts_(parts) {}

  Result<CudaPackSource> Write() {
    for (const CudaPackPart& part : parts_) TOK_RETURN_IF_ERROR(Add(part));
    if (teams_ > INT32_MAX)
      return MakeError(ErrorCode::kCudaText, fmt::format("pack {}: {} teams", name_, teams_));
    CudaSource& source = made_.source;
    source.name = name_;
    source.threads[0] = (threads_ + kWarp - 1) / kWarp * kWarp;
    source.dynamic_bytes = team_bytes_ > kStaticTeamBytes ? team_bytes_ : 0;
    made_.table = pointers_ > kMostPointers ? PointerTable::kMemory : PointerTable::kParameter;
    source.text = fmt::format("// {} kernels in one launch.\n\n", parts_.size()) + Prelude(source) +
                  functions_ + Tables() + Dispatch();
    return std::move(made_);
  }

 private:
  Status Add(const CudaPackPart& part) {
    auto [at, is_new] = function_of_.try_emplace(HashOf(*part.kernel), calls_.size());
    if (is_new) TOK_RETURN_IF_ERROR(AddFunction(*part.kernel));
    begins_.push_back(teams_);
    first_pointers_.push_back(static_cast<int64_t>(pointers_));
    numbers_.push_back(static_cast<int64_t>(at->second));
    teams_ += part.teams;
    pointers_ += part.kernel->ArgumentCount();
    return Ok();
  }

  Status AddFunction(const Kernel& kernel) {
    std::string name = fmt::format("part_{}", calls_.size());
    TOK_TRY(CudaSource source, CudaPartText(kernel, name));
    functions_ += source.text + "\n";
    made_.source.helpers.insert(source.helpers.begin(), source.helpers.end());
    int threads = source.threads[0] * source.threads[1] * source.threads[2];
    threads_ = std::max(threads_, threads);
    team_bytes_ = std::max(team_bytes_, source.dynamic_bytes);
    std::string call = fmt::format("{}(team, team_memory", name);
    for (size_t i = 0; i < kernel.ArgumentCount(); ++i) {
      const Array& array = kernel.arrays[i];
      call += fmt::format(", ({}{}*)at[{}]", array.access == Access::kRead ? "const " : "",
                          Spelling(kernel.index_bits).Type(array.type), i);
    }
    calls_.push_back({call + ");", threads});
    return Ok();
  }

  static std::string TableText(std::string_view name, const std::vector<int64_t>& values) {
    std::string text = fmt::format("__device__ const int {}[{}] = {{", name, values.size());
    for (size_t i = 0; i < values.size(); ++i)
      text += fmt::format("{}{}", i == 0 ? "" : i % 16 == 0 ? ",\n    " : ", ", values[i]);
    return text + "};\n";
  }

  std::string Tables() const {
    std::string text =
        "// Of each kernel: its first team, the first of its pointers, its function.\n";
    text += TableText("pack_teams", begins_) + TableText("pack_pointers", first_pointers_) +
            TableText("pack_functions", numbers_) + "\n";
    if (made_.table == PointerTable::kParameter)
      text += fmt::format("struct Pointers {{\n  void* at[{}];\n}};\n\n",
                          std::max<size_t>(pointers_, 1));
    return text;
  }

  std::string Dispatch() const {
    bool by_value = made_.table == PointerTable::kParameter;
    std::string text =
        fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}(\n    {}) {{\n",
                    made_.source.threads[0], name_,
                    by_value ? "const __grid_constant__ Pointers pointers"
                             : "void* const* __restrict__ pointers");
    if (made_.source.dynamic_bytes > 0) {
      text += "  extern __shared__ __align__(16) unsigned char team_memory[];\n";
    } else {
      text += fmt::format("  __shared__ __align__(16) unsigned char team_memory[{}];\n",
                          std::max<int64_t>(team_bytes_, 16));
    }
    text += fmt::format(
        "  int low = 0, high = {};\n"
        "  while (low < high) {{\n"
        "    const int middle = (low + high + 1) / 2;\n"
        "    if (pack_teams[middle] <= (int)blockIdx.x) {{\n"
        "      low = middle;\n"
        "    }} else {{\n"
        "      high = middle - 1;\n"
        "    }}\n"
        "  }}\n"
        "  const int team = (int)blockIdx.x - pack_teams[low];\n"
        "  void* const* at = {} + pack_pointers[low];\n"
        "  switch (pack_functions[low]) {{\n",
        parts_.size() - 1, by_value ? "pointers.at" : "pointers");
    for (size_t i = 0; i < calls_.size(); ++i) {
      text += fmt::format("    case {}:\n", i);
      if (calls_[i].threads < made_.source.threads[0])
        text += fmt::format("      if (threadIdx.x >= {}) return;\n", calls_[i].threads);
      text += fmt::format("      {}\n      return;\n", calls_[i].text);
    }
    return text + "  }\n}\n";
  }

  struct Call {
    std::string text;
    int threads = 1;
  };

  std::string name_;
  std::span<const CudaPackPart> parts_;
  CudaPackSource made_;
  std::string functions_;
  std::unordered_map<uint64_t, size_t> function_of_;  // by the hash of a kernel
  std::vector<Call> calls_;                           // by function
  std::vector<int64_t> begins_, first_pointers_, numbers_;
  int64_t teams_ = 0, team_bytes_ = 0;
  size_t pointers_ = 0;
  int threads_ = 1;
};

}  // namespace

Result<CudaPackSource> CudaPackText(const std::string& name, std::span<const CudaPackPart> parts) {
  return PackWriter(name, parts).Write();
}

}  // namespace tokamak::cuda
