// Property: any bytes as StableHLO text give a module or a located error.
#include "fuzz/fuzz.h"
#include "ir/infer.h"
#include "text/read.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto module = tokamak::ReadMlirText(text, "input");
  if (!module.ok()) {
    tokamak::fuzz::CheckLocated(module.error());
  } else {
    (void)tokamak::VerifyModule(*module.value());
  }
  return 0;
}
