#include "support/check.h"

#include <cstdio>
#include <cstdlib>

namespace tokamak {
namespace {
CrashHook crash_hook = nullptr;
}  // namespace

void SetCrashHook(CrashHook hook) {
  crash_hook = hook;
}

void FailCheck(const char* file, int line, const char* condition, const char* text) {
  std::fprintf(stderr, "internal error: %s\n  %s:%d: %s is false\n", text, file, line, condition);
  if (crash_hook != nullptr) crash_hook();
  std::abort();
}

}  // namespace tokamak
