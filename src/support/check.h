#pragma once

namespace tokamak {

// Internal assertions. FailCheck prints the failed condition and its source location, runs the
// crash hook and aborts.
[[noreturn]] void FailCheck(const char* file, int line, const char* condition, const char* text);

// The driver sets this to write a reproducer before the process stops.
using CrashHook = void (*)();
void SetCrashHook(CrashHook hook);

}  // namespace tokamak

// Aborts if an internal invariant does not hold. Input must never be able to trigger it.
#define TOK_CHECK(condition, text)                                \
  do {                                                            \
    if (!(condition)) [[unlikely]]                                \
      ::tokamak::FailCheck(__FILE__, __LINE__, #condition, text); \
  } while (false)

#define TOK_UNREACHABLE(text) ::tokamak::FailCheck(__FILE__, __LINE__, "unreachable", text)
