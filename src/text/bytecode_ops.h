#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "text/bytecode_tables.h"

namespace tokamak {

// A property of an op: an attribute that the op itself defines.
struct BytecodeProperty {
  std::string_view name;
  bool optional = false;
};

// What is known about an op of the bytecode: a row of vhlo_ops.def or sdy's.
struct BytecodeOpRow {
  std::string_view reads_as;  // "stablehlo.add"
  std::vector<BytecodeProperty> properties;
};

// Null when the op is not known. Constant time. `name` is without the dialect.
const BytecodeOpRow* FindBytecodeOp(std::string_view dialect, std::string_view name);

// TK1211 for an op without a row: says which versions of the op are known.
Error UnknownOp(const BytecodeFile& file, const BytecodeFile::OpName& op, size_t offset);

// The attributes that properties refer to, in the order of the row; an absent
// one has the index kAbsent. TK1212 when there are more or fewer.
inline constexpr uint64_t kAbsent = UINT64_MAX;
Result<std::vector<BytecodeRef>> ReadProperties(const BytecodeFile& file, std::string_view op,
                                                const BytecodeOpRow& row,
                                                std::optional<BytecodeRef> properties,
                                                size_t offset);

}  // namespace tokamak
