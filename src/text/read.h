#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ir.h"
#include "support/bytes.h"
#include "support/result.h"

namespace tokamak {

enum class Format : uint8_t { kMlirText, kMlirBytecode, kHloText };

// What the first bytes say; TK1001 when nothing fits.
Result<Format> RecogniseFormat(std::string_view bytes);

// Reads one program. Positions in errors are of `file`. Constants of bytecode
// stay windows into `bytes`. The module is not verified (see VerifyModule).
Result<std::unique_ptr<Module>> ReadModule(const Bytes& bytes, const std::string& file);

// Reads each program of a file: text is split at "// -----" lines (line
// numbers stay those of the file), bytecode holds one. A piece without anything
// but comments is a module without functions.
// One entry per program, so that one bad program does not hide the others.
std::vector<Result<std::unique_ptr<Module>>> ReadModules(const Bytes& bytes,
                                                         const std::string& file);

// The three readers.
Result<std::unique_ptr<Module>> ReadMlirText(std::string_view text, const std::string& file,
                                             int first_line = 1);
Result<std::unique_ptr<Module>> ReadMlirBytecode(const Bytes& bytes, const std::string& file);
Result<std::unique_ptr<Module>> ReadHloText(std::string_view text, const std::string& file,
                                            int first_line = 1);

}  // namespace tokamak
