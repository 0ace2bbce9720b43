#pragma once

// What the rows of mlir_attributes.def say about an op. The reader of text and bytecode and the
// writer are derived from the same rows.

#include <string_view>
#include <vector>

#include "ir/ir.h"

namespace tokamak {

class MlirAttrReader;
using MlirConverter = Attrs (*)(MlirAttrReader& in);

// Reads the attributes of an op.
MlirConverter ConverterOf(Op op);
// The attributes of an instruction that has an MLIR form, as ConverterOf reads them. Fields without
// a row are missing.
AttrDict MlirAttrsOf(const Instr& instr);

// An attribute that the op's printed form writes as "printed = value".
struct MlirKeyword {
  std::string_view printed, name;
};
std::vector<MlirKeyword> MlirKeywordsOf(Op op);

// The properties of a bytecode op in encoded (alphabetical) order. Covers VHLO 1.20.
int NewestVhloVersion(Op op);
std::vector<std::string_view> VhloPropertiesOf(Op op, int version);

}  // namespace tokamak
