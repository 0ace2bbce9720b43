// Packs of kernels as one CUDA C++ kernel. A block looks up which kernel it is a team of, and which
// of its teams; the kernels are functions of the device. Those that differ in constants alone
// (sizes, factors) are one, which reads them from a table.

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "backend/cuda/cuda_prims.h"
#include "backend/cuda/cuda_text.h"
#include "backend/cuda/part_form.h"
#include "kernel/form.h"
#include "kernel/names.h"

namespace tokamak::cuda {
namespace {

constexpr int kPackWarp = 32;
constexpr int64_t kPackStaticTeamBytes = 48 << 10;
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
    source.threads[0] = (threads_ + kPackWarp - 1) / kPackWarp * kPackWarp;
    source.dynamic_bytes = team_bytes_ > kPackStaticTeamBytes ? team_bytes_ : 0;
    made_.table = pointers_ > kMostPointers ? PointerTable::kMemory : PointerTable::kParameter;
    source.text = fmt::format("// {} kernels in one launch.\n\n", parts_.size()) + Prelude(source);
    for (Function& function : functions_) source.text += TextOf(function);
    source.text += Tables() + Dispatch();
    return std::move(made_);
  }

 private:
  // A function, of all kernels that are alike but for some constants.
  struct Function {
    PartForm form;  // of the first
    std::vector<OpenConstants::Constant> constants;
    std::vector<bool> differs;  // by constant: whether kernels have several
    std::string call;
    int threads = 1;
  };
  struct Part {
    size_t function = 0;
    std::vector<OpenConstants::Constant> constants;
  };

  Status Add(const CudaPackPart& part) {
    auto [at, is_new] = part_of_.try_emplace(FormOf(*part.kernel), known_.size());
    if (is_new) TOK_RETURN_IF_ERROR(AddKernel(*part.kernel));
    begins_.push_back(teams_);
    first_pointers_.push_back(static_cast<int64_t>(pointers_));
    numbers_.push_back(at->second);
    teams_ += part.teams;
    pointers_ += part.kernel->ArgumentCount();
    return Ok();
  }

  Status AddKernel(const Kernel& kernel) {
    Kernel plain = WithoutNames(kernel);
    TOK_TRY(PartForm form, PartFormOf(plain, "part"));
    // A text does not say how many threads run it.
    const CudaSource& source = form.source;
    std::string key = fmt::format("{} {} {} {}\n{}", source.threads[0], source.threads[1],
                                  source.threads[2], source.dynamic_bytes, source.text);
    auto [at, is_new] = function_of_.try_emplace(std::move(key), functions_.size());
    if (is_new) TOK_RETURN_IF_ERROR(AddFunction(kernel, plain, form));
    Function& function = functions_[at->second];
    for (size_t i = 0; i < form.constants.size(); ++i)
      if (form.constants[i].bits != function.constants[i].bits) function.differs[i] = true;
    known_.push_back({at->second, std::move(form.constants)});
    return Ok();
  }

  // As `kernel` calls things.
  Status AddFunction(const Kernel& kernel, Kernel plain, const PartForm& form) {
    plain.name = kernel.name;
    plain.notes = kernel.notes;
    for (size_t i = 0; i < kernel.arrays.size(); ++i) plain.arrays[i].name = kernel.arrays[i].name;
    for (size_t i = 0; i < kernel.loops.size(); ++i) plain.loops[i].name = kernel.loops[i].name;
    std::string name = fmt::format("part_{}", functions_.size());
    Function function;
    TOK_TRY(function.form, PartFormOf(plain, name));
    function.constants = form.constants;
    function.differs.resize(form.constants.size());
    const CudaSource& source = function.form.source;
    made_.source.helpers.insert(source.helpers.begin(), source.helpers.end());
    function.threads = source.threads[0] * source.threads[1] * source.threads[2];
    threads_ = std::max(threads_, function.threads);
    team_bytes_ = std::max(team_bytes_, source.dynamic_bytes);
    function.call = fmt::format("{}(team, team_memory", name);
    for (size_t i = 0; i < kernel.ArgumentCount(); ++i) {
      const Array& array = kernel.arrays[i];
      function.call += fmt::format(", ({}{}*)at[{}]", array.access == Access::kRead ? "const " : "",
                                   Spelling(kernel.index_bits).Type(array.type), i);
    }
    functions_.push_back(std::move(function));
    return Ok();
  }

  // The text of a function. Constants in which kernels differ are words that it gets a pointer to.
  static std::string TextOf(Function& function) {
    std::vector<std::string> words;
    std::string read;
    for (size_t i = 0, next = 0; i < function.constants.size(); ++i) {
      const OpenConstants::Constant& constant = function.constants[i];
      words.push_back(constant.literal);
      if (!function.differs[i]) continue;
      words.back() = fmt::format("constant_{}", next);
      bool is_real = constant.type == ScalarType::kF32;
      read += fmt::format("  const {} {} = {}(constants[{}]);\n", is_real ? "float" : "int",
                          words.back(), is_real ? "__uint_as_float" : "(int)", next++);
    }
    std::string text = WithoutMarks(function.form.source.text, words) + "\n";
    if (read.empty()) return text;
    constexpr std::string_view kEnd = ") {\n";
    size_t end = text.find(kEnd);
    text.insert(end + kEnd.size(), read);
    text.insert(end, ",\n    const unsigned* __restrict__ constants");
    function.call += ", constants";
    return text;
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
    std::vector<int64_t> functions;
    for (size_t number : numbers_)
      functions.push_back(static_cast<int64_t>(known_[number].function));
    text += TableText("pack_teams", begins_) + TableText("pack_pointers", first_pointers_) +
            TableText("pack_functions", functions) + ConstantTables() + "\n";
    if (made_.table == PointerTable::kParameter)
      text += fmt::format("struct Pointers {{\n  void* at[{}];\n}};\n\n",
                          std::max<size_t>(pointers_, 1));
    return text;
  }

  // The words of each kernel's constants, and where they begin.
  std::string ConstantTables() const {
    std::vector<int64_t> firsts, words;
    for (size_t number : numbers_) {
      const Part& part = known_[number];
      firsts.push_back(static_cast<int64_t>(words.size()));
      for (size_t i = 0; i < part.constants.size(); ++i)
        if (functions_[part.function].differs[i])
          words.push_back(static_cast<int32_t>(part.constants[i].bits));
    }
    if (words.empty()) return "";
    return "// The constants of each, where kernels differ in them.\n" +
           TableText("pack_firsts", firsts) + TableText("pack_constants", words);
  }

  bool HasConstants() const {
    return std::any_of(functions_.begin(), functions_.end(), [](const Function& function) {
      return std::any_of(function.differs.begin(), function.differs.end(),
                         [](bool differs) { return differs; });
    });
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
        "  void* const* at = {} + pack_pointers[low];\n",
        parts_.size() - 1, by_value ? "pointers.at" : "pointers");
    if (HasConstants())
      text += "  const unsigned* constants = (const unsigned*)pack_constants + pack_firsts[low];\n";
    text += "  switch (pack_functions[low]) {\n";
    for (size_t i = 0; i < functions_.size(); ++i) {
      text += fmt::format("    case {}:\n", i);
      if (functions_[i].threads < made_.source.threads[0])
        text += fmt::format("      if (threadIdx.x >= {}) return;\n", functions_[i].threads);
      text += fmt::format("      {});\n      return;\n", functions_[i].call);
    }
    return text + "  }\n}\n";
  }

  std::string name_;
  std::span<const CudaPackPart> parts_;
  CudaPackSource made_;
  std::unordered_map<std::string, size_t> part_of_;      // by the form of a kernel
  std::vector<Part> known_;                              // distinct kernels
  std::unordered_map<std::string, size_t> function_of_;  // by its threads and text
  std::vector<Function> functions_;
  std::vector<int64_t> begins_, first_pointers_;
  std::vector<size_t> numbers_;  // of known_, by part
  int64_t teams_ = 0, team_bytes_ = 0;
  size_t pointers_ = 0;
  int threads_ = 1;
};

}  // namespace

Result<CudaPackSource> CudaPackText(const std::string& name, std::span<const CudaPackPart> parts) {
  return PackWriter(name, parts).Write();
}

}  // namespace tokamak::cuda
