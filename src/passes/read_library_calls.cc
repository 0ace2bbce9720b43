// XLA dumps for GPUs contain library calls instead of ops. This pass translates them back, so that
// such a program fuses and runs like its source. A call becomes ops only if its whole configuration
// is understood; other calls are kept.

#include <algorithm>

#include <nlohmann/json.hpp>

#include "passes/passes.h"
#include "rewrite/editor.h"
#include "rewrite/library/fused_call.h"
#include "rewrite/library/library.h"
#include "rewrite/replace.h"

namespace tokamak {
namespace {

bool IsLibraryCall(const Instr& instr) {
  if (instr.op() != Op::kCustomCall) return false;
  const std::string& target = instr.attrs<CustomCallAttrs>().target;
  return target.starts_with("__cublas$") || target.starts_with("__cudnn$");
}

// Whether all results except the first are workspace: bytes with unspecified values.
bool OnlyWorkspaceBeside(const Shape& shape) {
  if (!shape.IsTuple()) return true;
  if (shape.elements().size() > 2 || shape.elements().empty()) return false;
  return std::ranges::all_of(
      shape.elements().begin() + 1, shape.elements().end(), [](const Shape& element) {
        return element.IsArray() && element.rank() == 1 &&
               (element.type() == ElementType::kS8 || element.type() == ElementType::kU8);
      });
}

Instr* Read(LibraryCallReader& call) {
  const std::string& target = call.call().attrs<CustomCallAttrs>().target;
  const Shape& shape = call.call().shape();
  if (!OnlyWorkspaceBeside(shape)) return call.No("results besides the first");
  if (!call.result().IsArray()) return call.No("no array");
  for (const Instr* operand : call.call().operands())
    if (!operand->shape().IsArray()) return call.No("an operand is not an array");
  if (target == "__cublas$gemm" || target == "__cublas$lt$matmul") return ReadGemm(call);
  if (target.starts_with("__cudnn$conv")) return MatchConvolution(call, target);
  if (target.starts_with("__cudnn$fmha")) return ReadAttention(call, target);
  return call.No("unsupported kind of call");
}

// The value that replaces the whole call.
Instr* ResultOf(Instr* call, Instr* value, Editor& make) {
  const Shape& shape = call->shape();
  if (!shape.IsTuple()) {
    value->set_shape(shape);
    return value;
  }
  value->set_shape(shape.elements()[0]);
  std::vector<Instr*> elements = {value};
  for (size_t i = 1; i < shape.elements().size(); ++i) {
    elements.push_back(make.Filled(shape.elements()[i], 0.0));
    elements.back()->set_shape(shape.elements()[i]);
  }
  return Editor::Beside(*call).Make(Op::kTuple, shape, std::move(elements));
}

Changed ReadOne(Instr* instr, PassContext& context) {
  const CustomCallAttrs& attrs = instr->attrs<CustomCallAttrs>();
  const auto config = nlohmann::json::parse(
      attrs.backend_config.empty() ? "{}" : attrs.backend_config, nullptr, false);
  Editor edit(*instr, Editor::Naming::kUnnamed);
  LibraryCallReader call(instr, config, edit);
  bool ordered = instr->is_control_predecessor() || !instr->extras().control_predecessors.empty();
  Instr* value = nullptr;
  if (config.is_discarded())
    call.No("its configuration is not JSON");
  else if (attrs.has_side_effect || ordered)
    call.No("it has a side effect or control dependences");
  else
    value = Read(call);
  bool is_new = value != nullptr && edit.Made(value);
  Instr* result = is_new ? ResultOf(instr, value, edit) : nullptr;
  if (result == nullptr || !CanReplace(*instr, *result, true)) {
    for (size_t i = edit.made().size(); i-- > 0;) RemoveUnused(edit.made()[i]);
    context.Rejected(
        "library.opaque", *instr, nullptr,
        attrs.target + ": " + (call.why().empty() ? "its shapes do not fit" : call.why()));
    return Changed::kNo;
  }
  std::string target = attrs.target;
  ReplaceBy(instr, result, true);
  context.Accepted("library.read", *instr, value, target);
  instr->parent()->Remove(instr);
  for (size_t i = edit.made().size(); i-- > 0;) RemoveUnused(edit.made()[i]);
  return Changed::kYes;
}

Changed ReadFusedCalls(Module& module, PassContext& context) {
  std::vector<Instr*> calls;
  for (const auto& computation : module.computations())
    for (Instr* instr : computation->Callers())
      if (IsFusedCall(*instr)) calls.push_back(instr);
  Changed changed = Changed::kNo;
  int number = 0;
  for (Instr* call : calls) changed |= ReadFusedCall(call, ++number, context);
  if (changed == Changed::kYes)
    for (const auto& computation : module.computations()) computation->PutInOrder();
  return changed;
}

}  // namespace

// Translates cuBLAS calls (GEMM with alpha, beta and epilogue) and cuDNN calls (convolutions,
// attention) into ops if their configuration is complete. Workspace results become zeros. Calls of
// jax.experimental.fused become calls whose bodies must be one kernel each.
Result<Changed> ReadLibraryCalls(Module& module, PassContext& context) {
  Changed changed = Changed::kNo;
  std::vector<Instr*> calls;
  for (const auto& computation : module.computations())
    if (computation->CountOf(Op::kCustomCall) > 0)
      for (Instr* instr : computation->Instrs())
        if (IsLibraryCall(*instr)) calls.push_back(instr);
  for (Instr* call : calls) changed |= ReadOne(call, context);
  return changed | ReadFusedCalls(module, context);
}

}  // namespace tokamak
