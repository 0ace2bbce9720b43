#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "support/bytes.h"
#include "support/result.h"

// Reading and writing files, and loading the programs of a file.

namespace tokamak {

// The bytes of a file, memory-mapped. "-" is standard input.
Result<Bytes> ReadFileBytes(const std::string& path);
// Writes to a temporary file next to `path` and renames it. "-" is standard output.
Status WriteFileBytes(const std::string& path, std::string_view data);
// An error if the file cannot be written; its contents stay. For commands that work long before
// they write.
Status CheckWritable(const std::string& path);

// A file and its programs, one entry each. An error in one program does not affect the others.
struct LoadedFile {
  std::string path;
  Bytes bytes;
  std::string_view format;  // "StableHLO text", "MLIR bytecode", "HLO text"; empty if unknown
  std::vector<Result<std::unique_ptr<Module>>> programs;

  // The text that errors quote; empty for bytecode.
  std::string_view source() const;
};

enum class Verification : uint8_t { kNo, kYes };

// Parses every program of a file, and verifies each one that parses. Returns an error only if the
// file cannot be read.
Result<LoadedFile> LoadFile(const std::string& path, Verification verification);
// Loads programs from memory; `path` is used in messages.
LoadedFile LoadBytes(const Bytes& bytes, const std::string& path, Verification verification);

}  // namespace tokamak
