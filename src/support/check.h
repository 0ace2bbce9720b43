#pragma once

namespace tokamak {

// Prints what is wrong and where in our sources, runs the crash hook, aborts.
[[noreturn]] void FailCheck(const char* file, int line, const char* condition, const char* text);

// The driver sets this to write a reproducer before the process stops.
using CrashHook = void (*)();
void SetCrashHook(CrashHook hook);

}  // namespace tokamak

// A fault of ours, never reachable from input. Says where in our sources, then stops.
#define TOK_CHECK(condition, text)                                \
  do {                                                            \
    if (!(condition)) [[unlikely]]                                \
      ::tokamak::FailCheck(__FILE__, __LINE__, #condition, text); \
  } while (false)

#define TOK_UNREACHABLE(text) ::tokamak::FailCheck(__FILE__, __LINE__, "unreachable", text)
