// The normal form is built by walking the program once per iteration (normal_form_builder.h). The
// values that a loop must carry are known only after the whole program has been visited, so a
// second iteration drops those that the first found unneeded.

#include "rewrite/normal_form.h"

#include <algorithm>
#include <unordered_map>

#include "analysis/effects.h"
#include "ir/compare.h"
#include "rewrite/normal/needs.h"
#include "rewrite/normal/normal_form_builder.h"

namespace tokamak {
namespace {

// Maximum number of iterations. Chosen.
constexpr int kMaxNormalIterations = 4;
// Limit on visited instructions: kMinSteps, or kStepsAnInstruction per instruction of the module if
// that is more (MaxSteps). Chosen: far above ordinary programs.
constexpr int64_t kMinSteps = int64_t{1} << 18, kStepsAnInstruction = 256;

// Copies the instructions that the entry reaches, operands first, starting from side effects in
// program order and then the root. The resulting order is independent of the source order.
class NormalFormEmitter {
 public:
  NormalFormEmitter(const Module& source, Module& out) : effects_(source), out_(out) {}

  Computation* Emit(const Computation& source) {
    auto it = done_.find(&source);
    if (it != done_.end()) return it->second;
    Computation* target = out_.AddComputation("c" + std::to_string(out_.computations().size()));
    done_[&source] = target;
    std::unordered_map<const Instr*, Instr*> copies;
    for (const Instr* parameter : source.parameters())
      copies[parameter] =
          target->AppendParameter(parameter->attrs<ParameterAttrs>().number, parameter->shape());
    for (const Instr* instr : source.Instrs())
      if (effects_.Of(*instr)) Copy(instr, *target, copies);
    target->set_root(Copy(source.root(), *target, copies));
    return target;
  }

 private:
  Instr* Copy(const Instr* root, Computation& target,
              std::unordered_map<const Instr*, Instr*>& copies) {
    std::vector<const Instr*> stack = {root};
    while (!stack.empty()) {
      const Instr* instr = stack.back();
      if (copies.contains(instr)) {
        stack.pop_back();
        continue;
      }
      size_t before = stack.size();
      for (size_t i = instr->operand_count(); i-- > 0;)
        if (!copies.contains(instr->operand(i))) stack.push_back(instr->operand(i));
      if (stack.size() > before) continue;
      std::vector<Instr*> operands;
      for (const Instr* operand : instr->operands()) operands.push_back(copies[operand]);
      std::vector<Computation*> called;
      for (const Computation* callee : instr->called()) called.push_back(Emit(*callee));
      Instr* copy = target.Append(instr->op(), instr->shape(), std::move(operands), instr->attrs());
      copy->set_called(std::move(called));
      copy->set_captures(instr->captures());
      copies[instr] = copy;
      stack.pop_back();
    }
    return copies[root];
  }

  Effects effects_;
  Module& out_;
  std::unordered_map<const Computation*, Computation*> done_;
};

// Calls are inlined, so thirty computations that each call the next one twice expand to 2^30
// instructions. Ordinary programs expand to a few times their size.
int64_t MaxSteps(const Module& module) {
  int64_t count = 0;
  for (const auto& computation : module.computations())
    count += static_cast<int64_t>(computation->size());
  return std::max(kMinSteps, kStepsAnInstruction * count);
}

Result<std::unique_ptr<Module>> NormalizeOnce(const Module& module, const LoopNeeds& needs) {
  Module scratch;
  TOK_RETURN_IF_ERROR(
      NormalFormBuilder(scratch, needs, MaxSteps(module)).RunEntry(*module.entry()));
  auto out = std::make_unique<Module>("normal");
  out->set_entry(NormalFormEmitter(scratch, *out).Emit(*scratch.entry()));
  return out;
}

}  // namespace

Result<std::unique_ptr<Module>> NormalForm(const Module& module) {
  if (module.entry() == nullptr) return std::make_unique<Module>("normal");
  TOK_TRY(std::unique_ptr<Module> normal, NormalizeOnce(module, {}));
  for (int iteration = 1; iteration < kMaxNormalIterations; ++iteration) {
    uint64_t before = StructuralHash(*normal);
    TOK_TRY(normal, NormalizeOnce(*normal, FindLoopNeeds(*normal)));
    if (StructuralHash(*normal) == before) break;
  }
  return normal;
}

}  // namespace tokamak
