#pragma once

// Prints types, attributes and constants in MLIR syntax. The text reader (mlir_text.h) parses them
// back to equal values.

#include <string>
#include <string_view>

#include "ir/attr_value.h"
#include "ir/sharding.h"

namespace tokamak {

void PrintType(std::string& out, const Shape& shape);  // layouts are omitted
void PrintAttr(std::string& out, const AttrValue& value);
void PrintDict(std::string& out, const AttrDict& dict);  // {a = 1 : i64, b}
void PrintDense(std::string& out, const Literal& literal);
void PrintString(std::string& out, std::string_view text);
void PrintSymbol(std::string& out, std::string_view name);
void PrintSharding(std::string& out, const Sharding& sharding);  // <@mesh, [{"x"}]>
void PrintMesh(std::string& out, const Mesh& mesh);              // <["x"=2]>

}  // namespace tokamak
