#pragma once

#include <string>
#include <string_view>

#include "support/error.h"

namespace tokamak {

// Where a command writes: the terminal, or strings in a test.
class Console {
 public:
  virtual ~Console() = default;
  virtual void Out(std::string_view text) = 0;
  virtual void Err(std::string_view text) = 0;
  // Whether a person looks at the errors right now: progress is shown then.
  virtual bool ShowsProgress() const { return false; }

  // Writes the error as a person reads it. Gives its exit code.
  int Report(const Error& error, std::string_view source = {});
};

class StdConsole : public Console {
 public:
  void Out(std::string_view text) override;
  void Err(std::string_view text) override;
  bool ShowsProgress() const override;
};

class StringConsole : public Console {
 public:
  void Out(std::string_view text) override { out += text; }
  void Err(std::string_view text) override { err += text; }
  std::string out, err;
};

inline int Code(ExitCode code) {
  return static_cast<int>(code);
}

}  // namespace tokamak
