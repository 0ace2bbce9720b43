// Whatever reads, prints in both forms, and reads back equal.
#include "fuzz/fuzz.h"
#include "ir/compare.h"
#include "ir/infer.h"
#include "text/read.h"
#include "text/write.h"

namespace tokamak {
namespace {

void CheckIdentity(const Module& module, bool hlo) {
  std::string text = hlo ? WriteHloText(module) : WriteStablehloText(module);
  // What the verifier refuses is printed all the same, but may not read: an add of three operands.
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
    if (!module.ok()) continue;
    tokamak::CheckIdentity(*module.value(), true);
    tokamak::CheckIdentity(*module.value(), false);
  }
  return 0;
}
