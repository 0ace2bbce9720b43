#pragma once

// Entry points that parse a program from MLIR text, MLIR bytecode or HLO text.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ir.h"
#include "support/bytes.h"
#include "support/result.h"

namespace tokamak {

enum class Format : uint8_t { kMlirText, kMlirBytecode, kHloText };

// Detects the format from the first bytes; TK1001 if none matches.
Result<Format> RecogniseFormat(std::string_view bytes);

// Reads one program. Positions in errors refer to `file`. Constants of bytecode remain views into
// `bytes`. The module is not verified (see VerifyModule).
Result<std::unique_ptr<Module>> ReadModule(const Bytes& bytes, const std::string& file);

// Reads each program of a file. Text is split at "// -----" lines (line numbers remain those of the
// file); bytecode holds one program. A section with only comments is a module without functions.
// Returns one entry per program, so one invalid program does not hide the others.
std::vector<Result<std::unique_ptr<Module>>> ReadModules(const Bytes& bytes,
                                                         const std::string& file);

// The three readers.
Result<std::unique_ptr<Module>> ReadMlirText(std::string_view text, const std::string& file,
                                             int first_line = 1);
Result<std::unique_ptr<Module>> ReadMlirBytecode(const Bytes& bytes, const std::string& file);
Result<std::unique_ptr<Module>> ReadHloText(std::string_view text, const std::string& file,
                                            int first_line = 1);

}  // namespace tokamak
