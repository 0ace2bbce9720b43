// Reads custom kernels from the attributes of their calls, and the regions of their hooks from
// fusions.

#include "gen/library/custom_kernel.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kernel/gpu_limits.h"

namespace tokamak {
namespace {

using nlohmann::json;

// Limits of CUDA launches (CUDA programming guide, compute capability 9.0).
constexpr LaunchSizes kMaxGrid = {2147483647, 65535, 65535};
constexpr LaunchSizes kMaxThreads = {1024, 1024, 64};
// Calls of the entry point of a CPU kernel. Chosen: beyond, the calls outweigh any work.
constexpr int64_t kMaxCpuBlocks = 1 << 24;

bool IsIdentifier(std::string_view text) {
  auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  auto fits = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
  return !text.empty() && is_letter(text[0]) && std::ranges::all_of(text, fits);
}

// Reads the JSON object of a call. The first problem is kept as `failure`.
class CustomKernelReader {
 public:
  explicit CustomKernelReader(const Instr& call) : call_(call) {}

  Result<CustomKernel> Read() {
    const AttrValue* value = Find(call_.attrs<CustomCallAttrs>().backend_dict, "kernel");
    const std::string* text = value == nullptr ? nullptr : value->As<std::string>();
    if (text == nullptr) return Wrong("it has no attribute 'kernel' with a JSON object");
    object_ = json::parse(*text, nullptr, /*allow_exceptions=*/false);
    if (!object_.is_object()) return Wrong("its attribute 'kernel' is not a JSON object");
    kernel_.name = Text(object_, "name");
    if (!IsIdentifier(kernel_.name)) return Wrong("its name is not an identifier of C");
    ReadSources();
    ReadArrays("inputs", call_.operand_count(), kernel_.inputs);
    ReadArrays("outputs", ResultShapesOf(call_.shape()).size(), kernel_.outputs);
    if (!failure_.empty()) return Wrong(failure_);
    ReadShapes();
    ReadHooks();
    ReadLaunch();
    ReadAliases();
    if (!failure_.empty()) return Wrong(failure_);
    return std::move(kernel_);
  }

 private:
  Error Wrong(const std::string& why) const {
    std::string name = kernel_.name.empty() ? "custom kernel" : "kernel '" + kernel_.name + "'";
    return MakeError(ErrorCode::kCustomKernelForm, name + ": " + why, SpanOf(call_));
  }
  void Fail(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
  }

  std::string Text(const json& object, const char* name) {
    auto it = object.find(name);
    if (it == object.end()) return "";
    if (!it->is_string()) Fail(fmt::format("'{}' is not a string", name));
    return it->is_string() ? it->get<std::string>() : "";
  }

  int64_t Number(const json& value, const char* name) {
    if (value.is_number_integer()) return value.get<int64_t>();
    Fail(fmt::format("'{}' is not an integer", name));
    return 1;
  }

  CustomKernelText Source(const char* name) {
    CustomKernelText source;
    source.text = Text(object_, name);
    auto at = object_.find(std::string(name) + "_at");
    if (at == object_.end() || !at->is_array() || at->size() != 2 || !(*at)[0].is_string())
      return source;
    source.file = (*at)[0].get<std::string>();
    source.line = std::max<int64_t>(1, Number((*at)[1], "at"));
    return source;
  }

  void ReadSources() {
    kernel_.c = Source("c");
    kernel_.cuda = Source("cuda");
    kernel_.is_cpp = Text(object_, "language") == "c++";
    if (kernel_.c.text.empty() && kernel_.cuda.text.empty()) Fail("it has no source");
    ReadOptions("c_options", kernel_.c_options);
    ReadOptions("cuda_options", kernel_.cuda_options);
    auto defines = object_.find("defines");
    if (defines == object_.end()) return;
    if (!defines->is_object()) return Fail("'defines' is not an object");
    for (const auto& [name, value] : defines->items()) {
      if (!IsIdentifier(name) || !value.is_string())
        return Fail("a definition is not a name with a text");
      kernel_.defines.emplace_back(name, value.get<std::string>());
    }
  }

  void ReadOptions(const char* key, std::vector<std::string>& options) {
    auto given = object_.find(key);
    if (given == object_.end()) return;
    if (!given->is_array()) return Fail(fmt::format("'{}' is not a list", key));
    for (const json& option : *given) {
      if (!option.is_string()) return Fail(fmt::format("'{}' has an entry that is no text", key));
      options.push_back(option.get<std::string>());
    }
  }

  void ReadArrays(const char* key, size_t count, std::vector<CustomKernelArray>& arrays) {
    auto names = object_.find(key);
    if (names == object_.end() || !names->is_array() || names->size() != count)
      return Fail(fmt::format("it names {} {}, and the call has {}",
                              names == object_.end() ? 0 : names->size(), key, count));
    for (const json& name : *names) {
      std::string text = name.is_string() ? name.get<std::string>() : "";
      if (!IsIdentifier(text))
        return Fail(fmt::format("'{}' has a name that is no identifier", key));
      if (!names_.insert(text).second) return Fail(fmt::format("the name '{}' occurs twice", text));
      arrays.emplace_back().name = text;
    }
  }

  void ReadShapes() {
    auto set = [&](CustomKernelArray& array, const Shape& shape) {
      if (!IsPlainArray(shape))
        return Fail(fmt::format("'{}' is {}, and kernels take arrays of static shape", array.name,
                                ToString(shape)));
      array.type = shape.type();
      array.dims = shape.dims();
    };
    for (size_t i = 0; i < kernel_.inputs.size(); ++i)
      set(kernel_.inputs[i], call_.operand(i)->shape());
    ResultShapes results = ResultShapesOf(call_.shape());
    for (size_t i = 0; i < kernel_.outputs.size(); ++i) set(kernel_.outputs[i], results[i]);
  }

  void ReadHooks() {
    for (auto [key, arrays] :
         {std::pair("load_hooks", &kernel_.inputs), std::pair("store_hooks", &kernel_.outputs)}) {
      auto hooks = object_.find(key);
      if (hooks == object_.end()) continue;
      if (!hooks->is_array()) return Fail(fmt::format("'{}' is not a list", key));
      for (const json& hook : *hooks) {
        int64_t number = Number(hook, key);
        if (number < 0 || number >= static_cast<int64_t>(arrays->size()))
          return Fail(fmt::format("'{}' has {}, which does not exist", key, number));
        (*arrays)[static_cast<size_t>(number)].hooked = true;
      }
    }
    auto loads = object_.find("loads");
    if (loads != object_.end() && loads->is_number()) kernel_.loads = loads->get<double>();
  }

  void ReadSizes(const char* key, const LaunchSizes& most, LaunchSizes& sizes) {
    auto given = object_.find(key);
    if (given == object_.end()) return;
    if (!given->is_array() || given->size() > kLaunchRank)
      return Fail(fmt::format("'{}' is no list", key));
    for (size_t i = 0; i < given->size(); ++i) {
      sizes[i] = Number((*given)[i], key);
      if (sizes[i] < 1 || sizes[i] > most[i])
        Fail(fmt::format("'{}' has {} along dimension {}; 1 to {} are possible", key, sizes[i], i,
                         most[i]));
    }
  }

  void ReadLaunch() {
    if (auto blocks = object_.find("blocks"); blocks != object_.end())
      kernel_.blocks = Number(*blocks, "blocks");
    if (kernel_.blocks < 1 || kernel_.blocks > kMaxCpuBlocks)
      Fail(fmt::format("it has {} blocks; 1 to {} are possible", kernel_.blocks, kMaxCpuBlocks));
    ReadSizes("grid", kMaxGrid, kernel_.grid);
    ReadSizes("threads", kMaxThreads, kernel_.threads);
    if (kernel_.threads[0] * kernel_.threads[1] * kernel_.threads[2] > kMaxThreadsPerBlock)
      Fail(fmt::format("a block has more than {} threads", kMaxThreadsPerBlock));
    if (auto shared = object_.find("shared"); shared != object_.end())
      kernel_.shared_bytes = Number(*shared, "shared");
    if (kernel_.shared_bytes < 0 || kernel_.shared_bytes > kMaxSharedBytes)
      Fail(fmt::format("a block has {} bytes of shared memory; 0 to {} are possible",
                       kernel_.shared_bytes, kMaxSharedBytes));
  }

  void ReadAliases() {
    for (const OutputAlias& alias : call_.attrs<CustomCallAttrs>().output_aliases) {
      size_t output = alias.output.empty() ? 0 : static_cast<size_t>(alias.output[0]);
      auto input = static_cast<size_t>(alias.operand);
      if (input >= kernel_.inputs.size() || output >= kernel_.outputs.size())
        return Fail("it aliases an operand or result that does not exist");
      const CustomKernelArray &from = kernel_.inputs[input], &to = kernel_.outputs[output];
      if (from.type != to.type || from.dims != to.dims)
        return Fail(
            fmt::format("'{}' and '{}' are aliases of different shapes", from.name, to.name));
      if (from.hooked || to.hooked)
        return Fail(fmt::format("'{}' has a hook and is updated in place", from.name));
      kernel_.aliases.emplace_back(input, output);
    }
  }

  const Instr& call_;
  CustomKernel kernel_;
  json object_;
  std::unordered_set<std::string> names_;
  std::string failure_;
};

// What `roots` need, back to `ends`.
FusedRegion RegionBetween(const std::vector<const Instr*>& roots,
                          const std::unordered_set<const Instr*>& ends) {
  return RegionOfHook(roots, [&](const Instr* instr) {
    return !ends.contains(instr) && instr->op() != Op::kParameter && !IsImmediate(*instr);
  });
}

void ReadFusion(const Instr& fusion, CustomKernelStep& step) {
  const Instr& call = *step.call;
  const Instr* root = fusion.called(0)->root();
  std::vector<const Instr*> results = {root};
  if (root->op() == Op::kTuple) results.assign(root->operands().begin(), root->operands().end());
  for (size_t i = 0; i < call.operand_count(); ++i) {
    const Instr* operand = call.operand(i);
    if (operand->op() == Op::kParameter) {
      step.operands[i] = static_cast<size_t>(operand->attrs<ParameterAttrs>().number);
    } else {
      step.operands[i].reset();
      step.loads.push_back({i, RegionBetween({operand}, {})});
    }
  }
  std::vector<const Instr*> outputs;
  for (size_t j = 0; j < step.kernel.outputs.size(); ++j)
    outputs.push_back(OutputOfCustomKernel(call, j));
  std::unordered_set<const Instr*> ends(outputs.begin(), outputs.end());
  std::vector<std::vector<const Instr*>> roots(outputs.size());
  for (size_t j = 0; j < outputs.size(); ++j) {
    auto found = std::ranges::find(results, outputs[j]);
    step.results[j].reset();
    if (found != results.end()) step.results[j] = static_cast<size_t>(found - results.begin());
  }
  for (const Instr* result : results) {
    if (ends.contains(result)) continue;
    FusedRegion region = RegionBetween({result}, ends);
    for (size_t j = 0; j < outputs.size(); ++j)
      if (outputs[j] != nullptr &&
          std::ranges::find(region.inputs, outputs[j]) != region.inputs.end()) {
        roots[j].push_back(result);
        break;
      }
  }
  for (size_t j = 0; j < outputs.size(); ++j)
    if (!roots[j].empty()) step.stores.push_back({j, RegionBetween(roots[j], ends)});
}

}  // namespace

int64_t CustomKernelArray::Count() const {
  int64_t count = 1;
  for (int64_t size : dims) count *= size;
  return count;
}

bool IsCustomKernelCall(const Instr& instr) {
  return instr.op() == Op::kCustomCall &&
         instr.attrs<CustomCallAttrs>().target == kCustomKernelTarget;
}

const Instr* CustomKernelIn(const Instr& instr) {
  if (IsCustomKernelCall(instr)) return &instr;
  if (instr.op() != Op::kFusion || instr.attrs<FusionAttrs>().kind != FusionKind::kCustom ||
      instr.called().empty() || instr.called(0)->CountOf(Op::kCustomCall) != 1)
    return nullptr;
  for (const Instr* inside : instr.called(0)->Instrs())
    if (IsCustomKernelCall(*inside)) return inside;
  return nullptr;
}

bool HasCSource(const Instr& call) {
  Result<CustomKernel> kernel = CustomKernelOf(call);
  return kernel.ok() && !kernel.value().c.text.empty();
}

Result<CustomKernel> CustomKernelOf(const Instr& call) {
  return CustomKernelReader(call).Read();
}

const Instr* OutputOfCustomKernel(const Instr& call, size_t number) {
  if (!call.shape().IsTuple()) return &call;
  for (const Instr* user : call.users())
    if (user->op() == Op::kGetTupleElement &&
        user->attrs<TupleIndexAttrs>().index == static_cast<int64_t>(number))
      return user;
  return nullptr;
}

size_t CustomKernelStep::ResultOf(const Instr& root) const {
  const Instr* all = fusion->called(0)->root();
  if (all->op() != Op::kTuple) return 0;
  return static_cast<size_t>(std::ranges::find(all->operands(), &root) - all->operands().begin());
}

Result<CustomKernelStep> CustomKernelStepOf(const Instr& instr) {
  CustomKernelStep step;
  step.call = CustomKernelIn(instr);
  TOK_TRY(step.kernel, CustomKernelOf(*step.call));
  for (size_t i = 0; i < step.kernel.inputs.size(); ++i) step.operands.emplace_back(i);
  for (size_t j = 0; j < step.kernel.outputs.size(); ++j) step.results.emplace_back(j);
  if (step.call == &instr) return step;
  step.fusion = &instr;
  ReadFusion(instr, step);
  return step;
}

}  // namespace tokamak
