#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "support/result.h"

// Compiles C and C++ text with the system's compiler to shared libraries, which are loaded into
// this process. Compiled libraries are in the disk cache.
namespace tokamak {

// A loaded shared library.
class SharedCode {
 public:
  explicit SharedCode(void* handle) : handle_(handle) {}
  ~SharedCode();
  SharedCode(const SharedCode&) = delete;
  SharedCode& operator=(const SharedCode&) = delete;
  // Null if there is no such function.
  void* Find(const char* name) const;

 private:
  void* handle_;
};

struct CSource {
  std::string name;  // for messages
  std::string text;
  bool is_cpp = false;
  std::vector<std::string> options = {};  // of the compiler, after ours
};

// The time that a compiler may take. Chosen: a thousand times what a kernel of 100 lines takes.
inline constexpr std::chrono::seconds kCompilerTime{60};

// Compiles (TOKAMAK_CC, else cc, gcc or clang; for C++ TOKAMAK_CXX, else c++, g++ or clang++) or
// finds the code in the disk cache, and loads it. Equal sources share one library, which is never
// unloaded. TK4008 with the compiler's message, TK4009 if there is no compiler or it takes longer
// than `time`.
Result<std::shared_ptr<const SharedCode>> CompileC(const CSource& source,
                                                   std::chrono::milliseconds time = kCompilerTime);

}  // namespace tokamak
