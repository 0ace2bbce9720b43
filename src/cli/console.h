#pragma once

#include <string>
#include <string_view>

#include "support/error.h"

namespace tokamak {

// The output of a command: the terminal, or strings in a test.
class Console {
 public:
  virtual ~Console() = default;
  virtual void Out(std::string_view text) = 0;
  virtual void Err(std::string_view text) = 0;
  // Whether standard error is a terminal, so that progress is shown.
  virtual bool ShowsProgress() const { return false; }

  // Writes the error as text for people. Returns its exit code.
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
