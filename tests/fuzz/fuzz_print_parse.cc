// Property: every module that parses prints in both forms and parses back equal.
#include "fuzz/fuzz.h"
#include "ir/compare.h"
#include "ir/infer.h"
#include "text/read.h"
#include "text/write.h"

namespace tokamak {
namespace {

constexpr size_t kMaxFuzzBytes = 1 << 16;  // constants per module (chosen: keeps an input fast)

// constant(5) of ten million elements is quick to parse and slow to print, but not a bug.
bool IsSmall(const Module& module) {
  size_t bytes = 0;
  for (const auto& computation : module.computations())
    for (const Instr* instr : computation->Instrs())
      if (instr->op() == Op::kConstant)
        bytes += instr->attrs<ConstantAttrs>().literal.data().size();
  return bytes <= kMaxFuzzBytes;
}

void CheckIdentity(const Module& module, bool hlo) {
  std::string text = hlo ? WriteHloText(module) : WriteStablehloText(module);
  // Invalid modules are printed too, but may not parse: an add of three operands.
  if (!VerifyModule(module).ok()) return;
  auto again = hlo ? ReadHloText(text, "printed") : ReadMlirText(text, "printed");
  if (!again.ok()) fuzz::Broken("what was printed does not read: " + Render(again.error(), text));
  std::string difference = FirstDifference(module, *again.value());
  if (!difference.empty()) fuzz::Broken("reads back differently: " + difference + "\n" + text);
  if (StructuralHash(module) != StructuralHash(*again.value()))
    fuzz::Broken("equal modules with different hashes\n" + text);
}

}  // namespace
}  // namespace tokamak

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto modules = tokamak::ReadModules(tokamak::Bytes::Copy(data, size), "input");
  for (const auto& module : modules) {
    if (!module.ok() || !tokamak::IsSmall(*module.value())) continue;
    tokamak::CheckIdentity(*module.value(), true);
    tokamak::CheckIdentity(*module.value(), false);
  }
  return 0;
}
