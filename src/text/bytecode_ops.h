#pragma once

// The table of known bytecode ops and their properties.

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

// The description of a known bytecode op.
struct BytecodeOpRow {
  std::string_view reads_as;  // "stablehlo.add"
  std::vector<BytecodeProperty> properties;
};

// Returns null if the op is unknown. Constant time. `name` excludes the dialect.
const BytecodeOpRow* FindBytecodeOp(std::string_view dialect, std::string_view name);

// The error TK1211 for an op without a row. Lists the known versions of the op.
Error UnknownOp(const BytecodeFile& file, const BytecodeFile::OpName& op, size_t offset);

// Returns the attributes that the properties refer to, in the order of the row; an absent one has
// the index kAbsent. Returns TK1212 if the number of properties differs from the row's.
inline constexpr uint64_t kAbsent = UINT64_MAX;
Result<std::vector<BytecodeRef>> ReadProperties(const BytecodeFile& file, std::string_view op,
                                                const BytecodeOpRow& row,
                                                std::optional<BytecodeRef> properties,
                                                size_t offset);

}  // namespace tokamak
