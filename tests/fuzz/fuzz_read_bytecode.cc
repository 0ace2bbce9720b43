// Property: any bytes as MLIR bytecode give a module or a located error.
#include "fuzz/fuzz.h"
#include "ir/infer.h"
#include "text/read.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto module = tokamak::ReadMlirBytecode(tokamak::Bytes::Copy(data, size), "input");
  if (!module.ok()) {
    tokamak::fuzz::CheckLocated(module.error());
  } else {
    (void)tokamak::VerifyModule(*module.value());
  }
  return 0;
}
