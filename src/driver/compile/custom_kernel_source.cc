// The layout of a source text. Parameters of the entry point are the operands and results of the
// step; those that only hooks use are tok_p0 ... and tok_r0 ...
//
//   prelude                 types, conversions, intrinsics that hooks use
//   hooks                   static functions of the index, and TOK_LOAD_i, TOK_STORE_j
//   #define TOK_X_...       facts about the arrays, and the user's definitions
//   #define TOK_KERNEL(name), and the declaration of the entry point
//   #line ...               the user's text
//   void tok_run(...)       CPU: passes an array of pointers on

#include "driver/compile/custom_kernel_source.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "backend/cuda/cuda_prims.h"
#include "driver/compile/custom_kernel_prelude.h"
#include "gen/library/custom_kernel_hooks.h"

namespace tokamak {
namespace {

std::string CTypeOf(ElementType type) {
  switch (type) {
    case ElementType::kPred:
      return "bool";
    case ElementType::kF16:
      return "tok_f16";
    case ElementType::kBF16:
      return "tok_bf16";
    case ElementType::kF32:
      return "float";
    case ElementType::kF64:
      return "double";
    case ElementType::kC64:
      return "tok_c64";
    case ElementType::kC128:
      return "tok_c128";
    default:
      break;
  }
  int bits = 8 * BytesOf(type);
  return IsSigned(type) ? fmt::format("int{}_t", bits) : fmt::format("uint{}_t", bits);
}

std::string Upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

// A string literal of C.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 32 ? '?' : c;
  }
  return quoted + "\"";
}

// The body of a hook as C. Its kernel is one loop over a list of stores of pure values.
class ScalarWriter {
 public:
  // Indices have 32 bits (kMaxHookElements): compilers vectorize their division by constants.
  explicit ScalarWriter(const Kernel& kernel) : kernel_(kernel), spelling_(32) {}

  // Empty if a statement or a value has no form in C.
  std::string Body() {
    const Stmt& loop = kernel_.body[0];
    if (kernel_.body.size() != 1 || loop.kind != StmtKind::kFor) return "";
    for (const Stmt& stmt : loop.body) {
      if (stmt.kind != StmtKind::kStore) return "";
      Write(stmt.index);
      Write(stmt.value);
    }
    for (const Stmt& stmt : loop.body)
      text_ += fmt::format("  a{}[{}] = {};\n", static_cast<size_t>(stmt.array),
                           IndexText(stmt.index), Operand(stmt.value));
    return failed_ ? "" : "  const int n = (int)i;\n" + text_;
  }

 private:
  std::string Operand(ValueId id) const {
    const ScalarNode& node = kernel_.node(id);
    if (node.prim == Prim::kConst) return spelling_.Constant(node.type, node.bits);
    if (node.prim == Prim::kLoop) return "n";
    return fmt::format("v{}", static_cast<size_t>(id));
  }

  // The index of the element itself keeps its width: a loop over it accesses consecutive elements.
  std::string IndexText(ValueId id) const {
    return kernel_.node(id).prim == Prim::kLoop ? "i" : Operand(id);
  }

  // Depth first: operands before users, each once. The depth is that of an expression of the
  // program, which the element emitter bounds.
  void Write(ValueId id) {
    const ScalarNode& node = kernel_.node(id);
    if (node.prim == Prim::kConst || node.prim == Prim::kLoop || !written_.insert(id).second)
      return;
    for (ValueId operand : kernel_.operands(id)) Write(operand);
    std::array<std::string, 3> operands;
    for (size_t k = 0; k < static_cast<size_t>(node.arity()); ++k)
      operands[k] = Operand(node.operands[k]);
    std::string value;
    if (node.prim == Prim::kLoad) {
      value =
          fmt::format("a{}[{}]", static_cast<size_t>(node.array()), IndexText(node.operands[0]));
    } else if (node.prim == Prim::kRead || node.prim == Prim::kShuffle ||
               node.prim == Prim::kMatch || node.prim == Prim::kExtent) {
      failed_ = true;
    } else {
      ScalarType from = node.arity() > 0 ? kernel_.node(node.operands[0]).type : node.type;
      value = spelling_.Prim(node.prim, node.type, from, operands);
    }
    text_ += fmt::format("  const {} v{} = {};\n", spelling_.Type(node.type),
                         static_cast<size_t>(id), value);
  }

  const Kernel& kernel_;
  cuda::Spelling spelling_;
  std::set<ValueId> written_;
  std::string text_;
  bool failed_ = false;
};

// Writes one text.
class SourceWriter {
 public:
  SourceWriter(const CustomKernelStep& step, bool is_cuda)
      : step_(step), kernel_(step.kernel), is_cuda_(is_cuda) {}

  Status Write() {
    const CustomKernelText& source = is_cuda_ ? kernel_.cuda : kernel_.c;
    if (source.text.empty()) return NoSource();
    Parameters();
    for (const CustomKernelHook& hook : step_.loads) TOK_RETURN_IF_ERROR(LoadHook(hook));
    for (const CustomKernelHook& hook : step_.stores) TOK_RETURN_IF_ERROR(StoreHook(hook));
    Facts();
    PlainHooks();
    EntryPoint();
    Line("#line {} {}", source.line, Quoted(source.file.empty() ? FileName() : source.file));
    text_ += source.text;
    if (!source.text.ends_with('\n')) text_ += '\n';
    if (!is_cuda_) Runner();
    text_ = (is_cuda_ ? std::string(CudaKernelPrelude()) + cuda::Prelude(helpers_)
                      : std::string(CKernelPrelude())) +
            text_;
    return Ok();
  }

  std::string text_;
  cuda::CudaSource helpers_;  // CUDA: what the hooks need of the prelude

 private:
  // A parameter of the entry point: an array of the step.
  struct Parameter {
    std::string name, type;
    bool is_output = false, is_restrict = true;
    std::string Text(bool is_cuda) const {
      return fmt::format("{}{}*{} {}", is_output ? "" : "const ", type,
                         !is_restrict ? ""
                         : is_cuda    ? " __restrict__"
                                      : " __restrict",
                         name);
    }
  };

  template <typename... Arguments>
  void Line(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    text_ += fmt::format(text, std::forward<Arguments>(arguments)...) + "\n";
  }

  std::string FileName() const {
    return kernel_.name + (is_cuda_ ? ".cu" : kernel_.is_cpp ? ".cc" : ".c");
  }

  Error NoSource() const {
    std::string why =
        is_cuda_ ? "it has no CUDA source" : "it has only a CUDA source: it needs a GPU";
    Error error = MakeError(ErrorCode::kCustomKernelTarget, "kernel '" + kernel_.name + "': " + why,
                            SpanOf(*step_.call));
    error.notes.push_back(is_cuda_ ? "pass cuda=SOURCE to tokamak.kernel"
                                   : "pass c=SOURCE to tokamak.kernel to run it on CPUs");
    return error;
  }

  Error NoHook(const CustomKernelHook& hook, const std::string& why) const {
    return MakeError(
        ErrorCode::kCustomKernelForm,
        fmt::format("kernel '{}': hook {} has no code: {}", kernel_.name, hook.number, why),
        SpanOf(*step_.call));
  }

  // TOK_X_TYPE, TOK_X_RANK, TOK_X_DIM0 ..., TOK_X_SIZE of each array, and the user's definitions.
  void Facts() {
    for (const auto* arrays : {&kernel_.inputs, &kernel_.outputs}) {
      for (const CustomKernelArray& array : *arrays) {
        std::string name = "TOK_" + Upper(array.name);
        Line("#define {}_TYPE {}", name, CTypeOf(array.type));
        Line("#define {}_IS_{} 1", name, Upper(std::string(HloName(array.type))));
        Line("#define {}_RANK {}", name, array.dims.size());
        Line("#define {}_SIZE {}", name, array.Count());
        for (size_t d = 0; d < array.dims.size(); ++d)
          Line("#define {}_DIM{} {}", name, d, array.dims[d]);
      }
    }
    for (const auto& [name, value] : kernel_.defines) Line("#define {} {}", name, value);
    for (const auto& [name, value] : same_) Line("#define {} {}", name, value);
    Line("#define {} 1", is_cuda_ ? "TOK_CUDA" : "TOK_CPU");
  }

  std::string OperandType(size_t operand) const {
    const Instr& step = step_.fusion != nullptr ? *step_.fusion : *step_.call;
    return CTypeOf(step.operand(operand)->shape().type());
  }

  void Parameters() {
    const Instr& step = step_.fusion != nullptr ? *step_.fusion : *step_.call;
    for (size_t k = 0; k < step.operand_count(); ++k)
      parameters_.push_back({fmt::format("tok_p{}", k), OperandType(k)});
    ResultShapes results = ResultShapesOf(step.shape());
    inputs_ = parameters_.size();
    for (size_t k = 0; k < results.size(); ++k)
      parameters_.push_back({fmt::format("tok_r{}", k), CTypeOf(results[k].type()), true});
    // The kernel's own names, for arrays that are not hooked. An operand that is passed twice keeps
    // the first name, and the other one is defined as it.
    for (size_t i = 0; i < kernel_.inputs.size(); ++i)
      if (step_.operands[i] && !kernel_.inputs[i].hooked)
        Name(*step_.operands[i], kernel_.inputs[i]);
    for (size_t j = 0; j < kernel_.outputs.size(); ++j)
      if (step_.results[j] && !kernel_.outputs[j].hooked)
        Name(inputs_ + *step_.results[j], kernel_.outputs[j]);
    for (auto [input, output] : kernel_.aliases)
      parameters_[*step_.operands[input]].is_restrict =
          parameters_[inputs_ + *step_.results[output]].is_restrict = false;
  }

  void Name(size_t parameter, const CustomKernelArray& array) {
    Parameter& own = parameters_[parameter];
    if (own.name.starts_with("tok_")) {
      own.name = array.name;
    } else {
      same_.emplace_back(array.name, own.name);
    }
  }

  // The parameters of the entry point that hold the arguments of a hook.
  std::vector<size_t> ParametersOf(const BuiltKernel& built, const Instr* output) const {
    std::vector<size_t> at;
    for (const KernelArgument& argument : built.arguments) {
      if (argument.instr == output || (argument.is_output && output == nullptr)) {
        at.push_back(kValue);
      } else if (argument.is_output) {
        at.push_back(inputs_ + step_.ResultOf(*argument.instr));
      } else {
        at.push_back(static_cast<size_t>(argument.instr->attrs<ParameterAttrs>().number));
      }
    }
    return at;
  }

  // The function of a hook: its arguments are pointers of the kernel IR's types.
  Result<std::string> HookFunction(const CustomKernelHook& hook, const BuiltKernel& built,
                                   const std::string& name) {
    if (is_cuda_) {
      Kernel kernel = built.kernel;
      for (size_t i = 0; i < kernel.ArgumentCount(); ++i) kernel.arrays[i].distinct = false;
      TOK_TRY(cuda::CudaSource source, cuda::DeviceFunctionText(kernel, name));
      helpers_.helpers.insert(source.helpers.begin(), source.helpers.end());
      return source.text;
    }
    std::string parameters = "const int64_t i";
    for (size_t k = 0; k < built.arguments.size(); ++k)
      parameters += fmt::format(", {}{}* a{}", built.arguments[k].is_output ? "" : "const ",
                                TypeOf(built, k), k);
    std::string body = ScalarWriter(built.kernel).Body();
    if (body.empty()) return NoHook(hook, "C cannot express it");
    return fmt::format("static inline void {}({}) {{\n{}}}\n", name, parameters, body);
  }

  static std::string TypeOf(const BuiltKernel& built, size_t argument) {
    return std::string(cuda::Spelling(64).Type(built.kernel.arrays[argument].type));
  }

  // TOK_LOAD_i or TOK_STORE_j: a function of the index (and value), with the parameters of the
  // entry point that the hook needs, and a macro that passes them.
  Status Hook(const CustomKernelHook& hook, const BuildOutcome& outcome, const Instr* output) {
    if (!outcome.built) return NoHook(hook, outcome.why_not);
    const BuiltKernel& built = *outcome.built;
    bool is_load = output == nullptr;
    std::string name = fmt::format("tok_{}_{}", is_load ? "load" : "store", hook.number);
    TOK_TRY(std::string function, HookFunction(hook, built, name + "_body"));
    text_ += function;
    std::vector<size_t> at = ParametersOf(built, output);
    std::string type = CTypeOf((is_load ? kernel_.inputs : kernel_.outputs)[hook.number].type);
    std::string declared = "const int64_t tok_index", given;
    if (!is_load) declared += ", " + type + " tok_value";
    std::string passed = is_cuda_ ? "(int)tok_index, nullptr" : "tok_index";
    std::vector<size_t> seen;
    for (size_t k = 0; k < at.size(); ++k) {
      const char* constant = built.arguments[k].is_output ? "" : "const ";
      passed += fmt::format(", ({}{}*){}", constant, TypeOf(built, k),
                            at[k] == kValue ? "&tok_value" : parameters_[at[k]].name);
      if (at[k] == kValue || std::ranges::find(seen, at[k]) != seen.end()) continue;
      seen.push_back(at[k]);
      declared += ", " + parameters_[at[k]].Text(is_cuda_);
      given += ", " + parameters_[at[k]].name;
    }
    std::string also;  // the value itself is a result, too
    if (!is_load && step_.results[hook.number]) {
      const Parameter& raw = parameters_[inputs_ + *step_.results[hook.number]];
      declared += ", " + raw.Text(is_cuda_);
      given += ", " + raw.name;
      also = "  " + raw.name + "[tok_index] = tok_value;\n";
    }
    const char* attributes = is_cuda_ ? "static __device__ __forceinline__" : "static inline";
    if (is_load) {
      Line("{} {} {}({}) {{\n  {} tok_value;\n  {}_body({});\n  return tok_value;\n}}", attributes,
           type, name, declared, type, name, passed);
      Line("#define TOK_LOAD_{}(index) {}((index){})", hook.number, name, given);
    } else {
      Line("{} void {}({}) {{\n{}  {}_body({});\n}}", attributes, name, declared, also, name,
           passed);
      Line("#define TOK_STORE_{}(index, value) {}((index), (value){})", hook.number, name, given);
      stored_.push_back(hook.number);
    }
    return Ok();
  }

  Status LoadHook(const CustomKernelHook& hook) {
    loaded_.push_back(hook.number);
    return Hook(hook, BuildLoadHook(hook, dialect()), nullptr);
  }

  Status StoreHook(const CustomKernelHook& hook) {
    const Instr* output = OutputOfCustomKernel(*step_.call, hook.number);
    return Hook(hook, BuildStoreHook(hook, *output, dialect()), output);
  }

  // Hooks around which nothing is fused access the arrays.
  void PlainHooks() {
    for (size_t i = 0; i < kernel_.inputs.size(); ++i) {
      if (std::ranges::find(loaded_, i) != loaded_.end() || !step_.operands[i]) continue;
      Line("#define TOK_LOAD_{}(index) ({}[index])", i, parameters_[*step_.operands[i]].name);
    }
    for (size_t j = 0; j < kernel_.outputs.size(); ++j) {
      if (std::ranges::find(stored_, j) != stored_.end() || !step_.results[j]) continue;
      Line("#define TOK_STORE_{}(index, value) ((void)({}[index] = (value)))", j,
           parameters_[inputs_ + *step_.results[j]].name);
    }
  }

  void EntryPoint() {
    std::string parameters = is_cuda_ ? "" : "int64_t tok_block, int64_t tok_blocks";
    for (const Parameter& parameter : parameters_)
      parameters += (parameters.empty() ? "" : ", ") + parameter.Text(is_cuda_);
    int64_t threads = kernel_.threads[0] * kernel_.threads[1] * kernel_.threads[2];
    if (is_cuda_) {
      Line("#define TOK_KERNEL(name) extern \"C\" __global__ void __launch_bounds__({}) name({})",
           threads, parameters);
    } else {
      Line("#define TOK_KERNEL(name) {}void name({})", kernel_.is_cpp ? "extern \"C\" " : "",
           parameters);
      Line("TOK_KERNEL({});", kernel_.name);
    }
  }

  // Casts are C casts: C and C++ share the text.
  void Runner() {
    std::string passed = "block, blocks";
    for (size_t k = 0; k < parameters_.size(); ++k)
      passed += fmt::format(", ({}{}*)arrays[{}]", parameters_[k].is_output ? "" : "const ",
                            parameters_[k].type, k);
    Line("#line 1 \"tok_run\"");
    Line("{}void {}(int64_t block, int64_t blocks, void* const* arrays) {{",
         kernel_.is_cpp ? "extern \"C\" " : "", kCustomKernelRun);
    Line("  (void)arrays;\n  {}({});\n}}", kernel_.name, passed);
  }

  Dialect dialect() const { return is_cuda_ ? Dialect::kGpu : Dialect::kCpu; }

  static constexpr size_t kValue = SIZE_MAX;  // of ParametersOf: the value of the hook

  const CustomKernelStep& step_;
  const CustomKernel& kernel_;
  bool is_cuda_;
  std::vector<Parameter> parameters_;  // the operands of the step, then its results
  size_t inputs_ = 0;                  // how many of them are operands
  std::vector<std::pair<std::string, std::string>> same_;  // names of arrays with two names
  std::vector<size_t> loaded_, stored_;                    // hooks with fused instructions
};

}  // namespace

Result<CSource> CSourceOf(const CustomKernelStep& step) {
  SourceWriter writer(step, false);
  TOK_RETURN_IF_ERROR(writer.Write());
  return CSource{step.kernel.name, std::move(writer.text_), step.kernel.is_cpp,
                 step.kernel.c_options};
}

Result<cuda::CudaSource> CudaSourceOf(const CustomKernelStep& step) {
  SourceWriter writer(step, true);
  TOK_RETURN_IF_ERROR(writer.Write());
  cuda::CudaSource source = std::move(writer.helpers_);
  source.name = step.kernel.name;
  source.text = std::move(writer.text_);
  for (size_t d = 0; d < source.threads.size(); ++d)
    source.threads[d] = static_cast<int>(step.kernel.threads[d]);
  source.dynamic_bytes = step.kernel.shared_bytes;
  source.is_custom = true;
  source.options = step.kernel.cuda_options;
  return source;
}

}  // namespace tokamak
