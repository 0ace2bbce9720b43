#pragma once

#include <map>
#include <string>

#include "driver/report/lints.h"

namespace tokamak {

// Comments of Python sources that suppress findings, on the line or the line above:
//
//   # tokamak: ignore[lint.float64, unrolled-loop]    these rules
//   # tokamak: ignore                                 all rules
class Suppressions {
 public:
  // `program_file`: relative names are tried beside it, too.
  explicit Suppressions(std::string program_file) : program_file_(std::move(program_file)) {}

  // Whether a comment at any line of the finding suppresses it. Sources that cannot be read
  // suppress nothing.
  bool Suppress(const Lint& lint);

 private:
  using Comments = std::map<int64_t, std::string>;  // by line: "*" or ",lint.float64,lint.upcast,"
  const Comments& CommentsOf(const std::string& file);

  std::string program_file_;
  std::map<std::string, Comments> files_;
};

// "model.py" and 7 of "model.py:7 (loss)"; line 0 if there is none.
struct LintPlace {
  std::string file;
  int64_t line = 0;
};
LintPlace LintPlaceOf(const std::string& text);

}  // namespace tokamak
