#include "driver/report/llvm_text.h"

#if TOK_HAVE_LLVM
#include "backend/cpu/codegen.h"
#include "backend/cpu/target.h"
#endif

namespace tokamak {

Result<std::string> LlvmTextOf(const Kernel& kernel) {
#if TOK_HAVE_LLVM
  TOK_TRY(cpu::Target target, cpu::HostTarget());
  return cpu::MakeIr(kernel, target, true);
#else
  return MakeError(ErrorCode::kBackendNotBuilt,
                   "kernel " + kernel.name + ": this build has no CPU backend");
#endif
}

}  // namespace tokamak
