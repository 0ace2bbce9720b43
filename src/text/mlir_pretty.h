#pragma once

// The printed forms of StableHLO ops: a table that the text reader interprets.

#include <cstdint>
#include <string_view>

namespace tokamak {

// The meaning of a type list without "(...) -> ...".
enum class MlirTypes : uint8_t {
  kSame,      // one type: of every operand and the result
  kSelect,    // two: of the predicate, and of everything else
  kComplex,   // that of the complex result; the operands are its real and imaginary parts
  kPairwise,  // one per operand; results have the same
  kTuple,     // that of the result, whose elements are the operands'
  kResult,    // those of the results; nothing about operands
  kOperands,  // those of the operands; no results
  kEach,      // one for all operands, no results
};

// Ops whose form is not "operands and keywords".
enum class MlirForm : uint8_t {
  kItems,
  kCall,
  kConstant,
  kCompare,
  kSlice,
  kTupleElement,
  kReduce,
  kWhile,
  kConvolution,
  kComposite,
  kScan,
  kTopK,
  kSharding,
  kManual,
  kNamed,
};

struct MlirPretty {
  std::string_view name;
  MlirTypes types = MlirTypes::kSame;
  MlirForm form = MlirForm::kItems;
};

// Returns a plain row (kSame) if the op has no row of its own.
const MlirPretty& PrettyFormOf(std::string_view name);

}  // namespace tokamak
