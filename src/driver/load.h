#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "support/bytes.h"
#include "support/result.h"

namespace tokamak {

// The bytes of a file, mapped and not copied. "-" is standard input.
Result<Bytes> ReadFileBytes(const std::string& path);
// Writes to a temporary file beside `path` and renames it. "-" is standard output.
Status WriteFileBytes(const std::string& path, std::string_view data);

// A file and its programs, one entry each. What a program refuses does not
// hide the others.
struct LoadedFile {
  std::string path;
  Bytes bytes;
  std::string_view format;  // "StableHLO text", "MLIR bytecode", "HLO text"; "" when unknown
  std::vector<Result<std::unique_ptr<Module>>> programs;

  // The text that errors quote: empty for bytecode.
  std::string_view source() const;
};

enum class Verification : uint8_t { kNo, kYes };

// Reads every program of a file, and verifies each that reads. The error is
// for a file that cannot be read at all.
Result<LoadedFile> LoadFile(const std::string& path, Verification verification);
// The same for bytes that are there already; `path` is for messages.
LoadedFile LoadBytes(const Bytes& bytes, const std::string& path, Verification verification);

}  // namespace tokamak
