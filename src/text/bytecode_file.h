#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/bytes.h"
#include "support/result.h"
#include "text/bytecode_cursor.h"

namespace tokamak {

// The container of an MLIR bytecode file, version 6: its sections split into tables. The contents
// of the entries are not interpreted here. Views point into `bytes`.
struct BytecodeFile {
  enum class Dialect : uint8_t { kVhlo, kBuiltin, kSdy, kOther };
  struct Window {
    uint64_t begin = 0, end = 0;
  };
  struct Entry {  // an attribute or a type
    uint64_t begin = 0;
    uint64_t end : 56 = 0;
    uint64_t custom : 1 = 0;  // in the dialect's own encoding; else assembly text
    uint64_t dialect : 7 = 0;
  };
  struct OpName {
    uint32_t dialect = 0;
    std::string_view name;  // without the dialect
  };

  Bytes bytes;
  std::string file;
  std::string_view producer;  // "StableHLO_v1.16.2"
  std::vector<std::string_view> strings;
  std::vector<std::string_view> dialects;
  std::vector<Dialect> dialect_kinds;  // one per dialect
  std::vector<OpName> ops;
  std::vector<Entry> attributes, types;
  std::vector<Window> properties;
  Window ir;

  BytecodeCursor At(Window window) const { return {bytes.data(), window.begin, window.end}; }
  BytecodeCursor At(const Entry& entry) const { return {bytes.data(), entry.begin, entry.end}; }
  std::string NameOf(const OpName& op) const;  // "vhlo.add_v1"

  Error ErrorAt(ErrorCode code, std::string message, uint64_t offset) const;
  // Returns TK1201 if the cursor ran past its end, TK1206 if it stopped before its end.
  Status Finish(const BytecodeCursor& cursor, std::string_view what) const;
  Status Whole(const BytecodeCursor& cursor, std::string_view what) const;
};

// Accounts for every byte of the container and checks every index. Does not decode the contents of
// entries, properties and IR.
Result<BytecodeFile> OpenBytecode(const Bytes& bytes, const std::string& file);

}  // namespace tokamak
