#include "rewrite/expand/expand.h"

#include <algorithm>
#include <array>

#include "rewrite/expand/formulas.h"

namespace tokamak {
namespace {

// The type in which a formula is evaluated.
enum class In : uint8_t {
  kType,    // the type of the operand
  kSingle,  // f32 if the operand is narrower
};

struct Expansion {
  Op op;
  TypeKind kind;
  In in;
  Term (*unary)(Term) = nullptr;
  Term (*binary)(Term, Term) = nullptr;
};

constexpr TypeKind kReals = TypeKind::kReal, kComplexes = TypeKind::kComplex;
constexpr std::array kExpansions = {
    Expansion{Op::kAcos, kReals, In::kType, ExpandAcos},
    Expansion{Op::kAcosh, kReals, In::kType, ExpandAcosh},
    Expansion{Op::kAsin, kReals, In::kType, ExpandAsin},
    Expansion{Op::kAsinh, kReals, In::kType, ExpandAsinh},
    Expansion{Op::kAtan, kReals, In::kType, ExpandAtan},
    Expansion{Op::kAtanh, kReals, In::kType, ExpandAtanh},
    Expansion{Op::kCosh, kReals, In::kSingle, ExpandCosh},
    Expansion{Op::kSinh, kReals, In::kSingle, ExpandSinh},
    Expansion{Op::kSquare, kReals, In::kType, ExpandSquare},
    Expansion{Op::kSquare, TypeKind::kSigned, In::kType, ExpandSquare},
    Expansion{Op::kSquare, TypeKind::kUnsigned, In::kType, ExpandSquare},
    Expansion{Op::kIsInf, kReals, In::kType, ExpandIsInf},
    Expansion{Op::kIsPosInf, kReals, In::kType, ExpandIsPosInf},
    Expansion{Op::kIsNegInf, kReals, In::kType, ExpandIsNegInf},
    Expansion{Op::kNextAfter, kReals, In::kType, nullptr, ExpandNextAfter},
    Expansion{Op::kErfc, kReals, In::kSingle, ExpandErfc},
    Expansion{Op::kErfInv, kReals, In::kSingle, ExpandErfInv},
    Expansion{Op::kBesselI1e, kReals, In::kSingle, ExpandBesselI1e},
    Expansion{Op::kLgamma, kReals, In::kSingle, ExpandLgamma},
    Expansion{Op::kDigamma, kReals, In::kSingle, ExpandDigamma},
    Expansion{Op::kZeta, kReals, In::kSingle, nullptr, ExpandZeta},
    Expansion{Op::kPolygamma, kReals, In::kSingle, nullptr, ExpandPolygamma},
    Expansion{Op::kAcos, kComplexes, In::kType, ExpandComplexAcos},
    Expansion{Op::kAcosh, kComplexes, In::kType, ExpandComplexAcosh},
    Expansion{Op::kAsin, kComplexes, In::kType, ExpandComplexAsin},
    Expansion{Op::kAsinh, kComplexes, In::kType, ExpandComplexAsinh},
    Expansion{Op::kAtan, kComplexes, In::kType, ExpandComplexAtan},
    Expansion{Op::kAtanh, kComplexes, In::kType, ExpandComplexAtanh},
    Expansion{Op::kCosh, kComplexes, In::kType, ExpandComplexCosh},
    Expansion{Op::kSinh, kComplexes, In::kType, ExpandComplexSinh},
    Expansion{Op::kExp, kComplexes, In::kType, ExpandComplexExp},
    Expansion{Op::kLog, kComplexes, In::kType, ExpandComplexLog},
    Expansion{Op::kLog1p, kComplexes, In::kType, ExpandComplexLog1p},
    Expansion{Op::kSqrt, kComplexes, In::kType, ExpandComplexSqrt},
    Expansion{Op::kSquare, kComplexes, In::kType, ExpandComplexSquare},
    Expansion{Op::kConj, kComplexes, In::kType, ExpandComplexConj},
};

// A table for speed: this is queried for every new instruction, and most ops have no expansion.
constexpr std::array<bool, kOpCount> kHasExpansion = [] {
  std::array<bool, kOpCount> has{};
  for (const Expansion& expansion : kExpansions) has[static_cast<size_t>(expansion.op)] = true;
  return has;
}();

}  // namespace

bool HasExpansion(const Instr& instr) {
  return kHasExpansion[static_cast<size_t>(instr.op())];
}

Instr* ExpandAsJax(TermGraph& graph, Op op, const Shape& shape, std::span<Instr* const> operands) {
  if (!kHasExpansion[static_cast<size_t>(op)] || shape.HasDynamicDims()) return nullptr;
  ElementType type = operands[0]->shape().type();
  auto found = std::ranges::find_if(kExpansions, [&](const Expansion& expansion) {
    return expansion.op == op && expansion.kind == KindOf(type);
  });
  if (found == kExpansions.end()) return nullptr;
  // nextafter steps through the bit patterns, which some narrow types order differently.
  if (op == Op::kNextAfter && InfoOf(type).bits < 16) return nullptr;
  bool widen = found->in == In::kSingle && InfoOf(type).bits < 32;
  auto term = [&](size_t i) {
    Term operand{&graph, operands[i]};
    return widen ? operand.As(ElementType::kF32) : operand;
  };
  Term value = found->unary != nullptr ? found->unary(term(0)) : found->binary(term(0), term(1));
  return widen ? value.As(type).instr : value.instr;
}

}  // namespace tokamak
