#pragma once

#include <string>
#include <vector>

#include "driver/report/compile_report.h"
#include "support/result.h"

// The code that a step's kernels become: the text that the backend generates, and the instructions
// that the vendor's compiler makes of it.

namespace tokamak {

// CUDA C++ of a GPU step, LLVM IR after LLVM's passes of a CPU step. TK6003 if this build has no
// such backend.
struct StepCode {
  std::string name = {};  // of the function; GPU only
  std::string text = {};
};
Result<StepCode> CodeOfStep(const CompileReport& report, const StepReport& step);

// Machine code as text: PTX by NVRTC, or assembly by LLVM.
struct Listing {
  std::string text;
  // GPU: what ptxas reports for a thread, and its spills. Zero on CPUs.
  int registers = 0, spilled_bytes = 0;
};
// TK4122 without NVRTC, TK6003 without that backend.
Result<Listing> ListingOf(const CompileReport& report, const StepReport& step,
                          const StepCode& code);

// The compiler of listings: "NVRTC 13.0", "LLVM 19". Empty if there is none; `why_none` then says
// why.
std::string ListingCompiler(bool for_gpu, std::string& why_none);

}  // namespace tokamak
