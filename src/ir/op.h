#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ir/element_type.h"

namespace tokamak {

// The ops of the IR and their static properties; ops.def is the table.
enum class Op : uint8_t {
#define TOK_OP(id, ...) k##id,
#include "ir/ops.def"
};

inline constexpr size_t kOpCount = 0
#define TOK_OP(id, ...) +1
#include "ir/ops.def"
    ;

// Element types that an op accepts: sets of TypeKind.
enum TypeClass : uint8_t {
  kPredClass = 1,
  kSignedClass = 2,
  kUnsignedClass = 4,
  kReal = 8,
  kComplexClass = 16,
  kInteger = kSignedClass | kUnsignedClass,
  kBits = kInteger | kPredClass,
  kIntOrReal = kInteger | kReal,
  kFloating = kReal | kComplexClass,
  kNumber = kInteger | kFloating,
  kAnyType = kNumber | kPredClass,
};

enum class ShapeRule : uint8_t {
  kSameAsOperands,  // all operands and the result have one shape
  kFromAttributes,  // computed from operands and attributes
  kExplicit,        // stated with the instruction, and checked
};

enum Trait : uint16_t {
  kLeaf = 1,
  kElementwise = 2,
  kDataMovement = 4,
  kReduction = 8,
  kContraction = 16,
  kRandom = 32,
  kOpaqueMath = 64,     // linear algebra, transforms
  kDynamicShape = 128,  // the result's shape is data-dependent
  kStructure = 256,     // tuples, tokens, barriers: moves no data
  kControlFlow = 512,   // calls computations
  kCollective = 1024,   // exchanges data between devices
  kSideEffect = 2048,   // must run, in program order, even if unused
};

// The properties of an op that hold for every instruction with it.
struct OpInfo {
  Op op;
  std::string_view name;  // in HLO text
  std::string_view mlir;  // including its dialect; "" if no dialect has it
  int arity;              // -1: any number
  TypeClass types;
  ShapeRule shape_rule;
  uint16_t traits;
  int flops_per_element;
  std::string_view attrs;  // the name of its attribute struct
  std::string_view meaning;

  constexpr bool Is(Trait trait) const { return (traits & trait) != 0; }
  bool Takes(ElementType type) const { return (types >> static_cast<int>(KindOf(type)) & 1) != 0; }
};

const OpInfo& InfoOf(Op op);
std::span<const OpInfo> AllOps();
std::optional<Op> OpFromName(std::string_view name);      // constant time
std::optional<Op> OpFromMlirName(std::string_view name);  // "stablehlo.add"; constant time

// The names that HLO text uses for the computations that an op calls: {"condition", "body"} for
// while. A variadic list has one name with a '*': {"branch_computations*"}.
std::span<const std::string_view> CalledRoles(Op op);

// op(x, y) equals op(y, x). Excludes compare, because exchanging its operands changes its
// direction.
bool IsCommutative(Op op);

// while, conditional, call: its computations run step by step, as the program around it does. Other
// ops call computations that are part of one instruction (reducers, fusion bodies).
bool RunsComputations(Op op);

}  // namespace tokamak
