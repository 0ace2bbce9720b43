// Horizontally fused launches as one CUDA C++ kernel. A block looks up its kernel, and its index
// within that kernel's grid, by blockIdx; the kernels are device functions. Kernels that differ
// only in constants (sizes, factors) share one function, which reads the constants from a table.

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "backend/cuda/cuda_prims.h"
#include "backend/cuda/cuda_text.h"
#include "backend/cuda/device_function_form.h"
#include "kernel/form.h"
#include "kernel/gpu_limits.h"
#include "kernel/names.h"

namespace tokamak::cuda {
namespace {

// Threads of a warp (CUDA programming guide).
constexpr int kHorizontalWarp = 32;
// Pointers that fit the 4 KiB of kernel parameters of every device and driver (CUDA programming
// guide).
constexpr size_t kMostPointers = 500;

class HorizontalWriter {
 public:
  HorizontalWriter(const std::string& name, std::span<const HorizontalKernel> entries)
      : name_(IdentifierFrom(name)), entries_(entries) {}

  Result<HorizontalSource> Write() {
    for (const HorizontalKernel& entry : entries_) TOK_RETURN_IF_ERROR(Add(entry));
    if (blocks_ > INT32_MAX)
      return MakeError(ErrorCode::kCudaText,
                       fmt::format("horizontally fused launch {}: {} blocks", name_, blocks_));
    CudaSource& source = made_.source;
    source.name = name_;
    source.threads[0] = (threads_ + kHorizontalWarp - 1) / kHorizontalWarp * kHorizontalWarp;
    source.dynamic_bytes = shared_bytes_ > kStaticSharedBytes ? shared_bytes_ : 0;
    made_.table = pointers_ > kMostPointers ? PointerTable::kMemory : PointerTable::kParameter;
    source.text =
        fmt::format("// {} kernels in one launch.\n\n", entries_.size()) + Prelude(source);
    for (Function& function : functions_) source.text += TextOf(function);
    source.text += Tables() + Dispatch();
    return std::move(made_);
  }

 private:
  // A device function, shared by all kernels that are equal except for some constants.
  struct Function {
    DeviceFunctionForm form;  // of the first kernel
    std::vector<OpenConstants::Constant> constants;
    std::vector<bool> differs;  // per constant: whether kernels have different values
    std::string call;
    int threads = 1;
  };
  struct Part {
    size_t function = 0;
    std::vector<OpenConstants::Constant> constants;
  };

  Status Add(const HorizontalKernel& entry) {
    auto [at, is_new] = form_index_.try_emplace(FormOf(*entry.kernel), known_.size());
    if (is_new) TOK_RETURN_IF_ERROR(AddKernel(*entry.kernel));
    begins_.push_back(blocks_);
    first_pointers_.push_back(static_cast<int64_t>(pointers_));
    numbers_.push_back(at->second);
    blocks_ += entry.blocks;
    pointers_ += entry.kernel->ArgumentCount();
    return Ok();
  }

  Status AddKernel(const Kernel& kernel) {
    Kernel plain = WithoutNames(kernel);
    TOK_TRY(DeviceFunctionForm form, DeviceFunctionFormOf(plain, "part"));
    // The text does not determine the number of threads.
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

  // With the names of `kernel`.
  Status AddFunction(const Kernel& kernel, Kernel plain, const DeviceFunctionForm& form) {
    plain.name = kernel.name;
    plain.notes = kernel.notes;
    for (size_t i = 0; i < kernel.arrays.size(); ++i) plain.arrays[i].name = kernel.arrays[i].name;
    for (size_t i = 0; i < kernel.loops.size(); ++i) plain.loops[i].name = kernel.loops[i].name;
    std::string name = fmt::format("entry_{}", functions_.size());
    Function function;
    TOK_TRY(function.form, DeviceFunctionFormOf(plain, name));
    function.constants = form.constants;
    function.differs.resize(form.constants.size());
    const CudaSource& source = function.form.source;
    made_.source.helpers.insert(source.helpers.begin(), source.helpers.end());
    function.threads = source.threads[0] * source.threads[1] * source.threads[2];
    threads_ = std::max(threads_, function.threads);
    shared_bytes_ = std::max(shared_bytes_, source.dynamic_bytes);
    function.call = fmt::format("{}(block, shared_memory", name);
    for (size_t i = 0; i < kernel.ArgumentCount(); ++i) {
      const Array& array = kernel.arrays[i];
      function.call += fmt::format(", ({}{}*)at[{}]", array.access == Access::kRead ? "const " : "",
                                   Spelling(kernel.index_bits).Type(array.type), i);
    }
    functions_.push_back(std::move(function));
    return Ok();
  }

  // The text of a function. Constants in which kernels differ are read through a pointer parameter.
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
    std::string text = "// Per kernel: its first block, its first pointer, its function.\n";
    std::vector<int64_t> functions;
    for (size_t number : numbers_)
      functions.push_back(static_cast<int64_t>(known_[number].function));
    text += TableText("horizontal_first_blocks", begins_) +
            TableText("horizontal_pointers", first_pointers_) +
            TableText("horizontal_functions", functions) + ConstantTables() + "\n";
    if (made_.table == PointerTable::kParameter)
      text += fmt::format("struct Pointers {{\n  void* at[{}];\n}};\n\n",
                          std::max<size_t>(pointers_, 1));
    return text;
  }

  // The constants of each kernel as words, and the offset of each kernel's first.
  std::string ConstantTables() const {
    std::vector<int64_t> firsts, words;
    for (size_t number : numbers_) {
      const Part& entry = known_[number];
      firsts.push_back(static_cast<int64_t>(words.size()));
      for (size_t i = 0; i < entry.constants.size(); ++i)
        if (functions_[entry.function].differs[i])
          words.push_back(static_cast<int32_t>(entry.constants[i].bits));
    }
    if (words.empty()) return "";
    return "// Per kernel: the constants in which kernels differ.\n" +
           TableText("horizontal_firsts", firsts) + TableText("horizontal_constants", words);
  }

  bool HasConstants() const {
    return std::any_of(functions_.begin(), functions_.end(), [](const Function& function) {
      return std::any_of(function.differs.begin(), function.differs.end(),
                         [](bool differs) { return differs; });
    });
  }

  // The __global__ function: a binary search maps the block to its entry, whose device function it
  // then calls with the entry's own block index and pointers.
  std::string Dispatch() const {
    bool by_value = made_.table == PointerTable::kParameter;
    std::string text =
        fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}(\n    {}) {{\n",
                    made_.source.threads[0], name_,
                    by_value ? "const __grid_constant__ Pointers pointers"
                             : "void* const* __restrict__ pointers");
    if (made_.source.dynamic_bytes > 0) {
      text += "  extern __shared__ __align__(16) unsigned char shared_memory[];\n";
    } else {
      text += fmt::format("  __shared__ __align__(16) unsigned char shared_memory[{}];\n",
                          std::max<int64_t>(shared_bytes_, 16));
    }
    text += fmt::format(
        "  int low = 0, high = {};\n"
        "  while (low < high) {{\n"
        "    const int middle = (low + high + 1) / 2;\n"
        "    if (horizontal_first_blocks[middle] <= (int)blockIdx.x) {{\n"
        "      low = middle;\n"
        "    }} else {{\n"
        "      high = middle - 1;\n"
        "    }}\n"
        "  }}\n"
        "  const int block = (int)blockIdx.x - horizontal_first_blocks[low];\n"
        "  void* const* at = {} + horizontal_pointers[low];\n",
        entries_.size() - 1, by_value ? "pointers.at" : "pointers");
    if (HasConstants())
      text +=
          "  const unsigned* constants = (const unsigned*)horizontal_constants + "
          "horizontal_firsts[low];\n";
    text += "  switch (horizontal_functions[low]) {\n";
    for (size_t i = 0; i < functions_.size(); ++i) {
      text += fmt::format("    case {}:\n", i);
      if (functions_[i].threads < made_.source.threads[0])
        text += fmt::format("      if (threadIdx.x >= {}) return;\n", functions_[i].threads);
      text += fmt::format("      {});\n      return;\n", functions_[i].call);
    }
    return text + "  }\n}\n";
  }

  std::string name_;
  std::span<const HorizontalKernel> entries_;
  HorizontalSource made_;
  std::unordered_map<std::string, size_t> form_index_;   // by the form of a kernel
  std::vector<Part> known_;                              // distinct kernels
  std::unordered_map<std::string, size_t> function_of_;  // by threads and text
  std::vector<Function> functions_;
  std::vector<int64_t> begins_, first_pointers_;
  std::vector<size_t> numbers_;  // indices into known_, per entry
  int64_t blocks_ = 0, shared_bytes_ = 0;
  size_t pointers_ = 0;
  int threads_ = 1;
};

}  // namespace

Result<HorizontalSource> HorizontalText(const std::string& name,
                                        std::span<const HorizontalKernel> entries) {
  return HorizontalWriter(name, entries).Write();
}

}  // namespace tokamak::cuda
