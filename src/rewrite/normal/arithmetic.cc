#include <utility>

#include "ir/compare_direction.h"
#include "rewrite/normal/rules.h"

namespace tokamak {
namespace {

// Also for floats, as in XLA's importer: -0 + 0 becomes -0.
Instr* SimplifyAdd(const Site& site) {
  if (IsSplatOf(site.y(), 0)) return site.x();
  if (IsSplatOf(site.x(), 0)) return site.y();
  return nullptr;
}

Instr* SimplifySubtract(const Site& site) {
  return IsSplatOf(site.y(), 0) ? site.x() : nullptr;
}

Instr* SimplifyMultiply(const Site& site) {
  if (site.shape.type() == ElementType::kPred) return nullptr;
  if (IsSplatOf(site.y(), 1)) return site.x();
  if (IsSplatOf(site.x(), 1)) return site.y();
  if (!IsInteger(site.shape.type())) return nullptr;
  if (IsSplatOf(site.y(), 0)) return site.y();
  return IsSplatOf(site.x(), 0) ? site.x() : nullptr;
}

Instr* SimplifyDivide(const Site& site) {
  return IsSplatOf(site.y(), 1) ? site.x() : nullptr;
}

bool IsAllOnes(const Instr* instr) {
  const Literal* scalar = ScalarOf(instr);
  if (scalar == nullptr) return false;
  int bits = InfoOf(scalar->type()).bits;
  return scalar->BitsAt(0) == (bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1);
}

Instr* SimplifyAnd(const Site& site) {
  for (size_t i : {0, 1}) {
    if (IsAllOnes(site.operands[i])) return site.operands[1 - i];
    if (IsSplatOf(site.operands[i], 0)) return site.operands[i];
  }
  return site.x() == site.y() ? site.x() : nullptr;
}

Instr* SimplifyOr(const Site& site) {
  for (size_t i : {0, 1}) {
    if (IsAllOnes(site.operands[i])) return site.operands[i];
    if (IsSplatOf(site.operands[i], 0)) return site.operands[1 - i];
  }
  return site.x() == site.y() ? site.x() : nullptr;
}

Instr* SimplifyConvert(const Site& site) {
  if (site.x()->shape().type() == site.shape.type()) return site.x();
  if (site.x()->op() == Op::kBroadcast) {  // convert the smaller array
    Instr* source = site.x()->operand(0);
    Instr* converted =
        site.graph.Make(Op::kConvert, source->shape().WithType(site.shape.type()), {source});
    return site.graph.Make(Op::kBroadcast, site.shape, {converted}, site.x()->attrs());
  }
  return nullptr;
}

Instr* Truth(const Site& site, bool value) {
  return SplatOf(site.graph, site.graph.Constant(Literal::ScalarInt(ElementType::kPred, value)),
                 site.shape);
}

// A pred compared with a constant, or an integer with itself.
Instr* DecideCompare(const Site& site) {
  const CompareAttrs& attrs = site.attrs.As<CompareAttrs>();
  ElementType type = site.x()->shape().type();
  bool equal = attrs.direction == CompareDirection::kEq ||
               attrs.direction == CompareDirection::kLe || attrs.direction == CompareDirection::kGe;
  if (site.x() == site.y() && !IsReal(type) && !IsComplex(type)) return Truth(site, equal);
  if (type != ElementType::kPred) return nullptr;
  bool same = attrs.direction == CompareDirection::kEq;
  if (!same && attrs.direction != CompareDirection::kNe) return nullptr;
  for (size_t i : {0, 1}) {
    if (!IsSplatOf(site.operands[i], same ? 1 : 0)) continue;
    return site.operands[1 - i];
  }
  return nullptr;
}

Instr* SimplifyCompare(const Site& site) {
  if (Instr* decided = DecideCompare(site)) return decided;
  if (site.graph.HashOf(site.x()) <= site.graph.HashOf(site.y())) return nullptr;
  CompareAttrs attrs = site.attrs.As<CompareAttrs>();
  attrs.direction = Swapped(attrs.direction);
  return site.graph.Make(Op::kCompare, site.shape, {site.y(), site.x()}, attrs);
}

Instr* SimplifySelect(const Site& site) {
  if (site.operands[1] == site.operands[2]) return site.operands[1];
  if (const Literal* chosen = ScalarOf(site.x()))
    return site.operands[chosen->BitsAt(0) != 0 ? 1 : 2];
  // A scalar predicate is equivalent to its broadcast.
  if (site.x()->shape().IsScalar() && !site.shape.IsScalar() && !site.shape.HasDynamicDims()) {
    Instr* wide = SplatOf(site.graph, site.x(), site.shape.WithType(ElementType::kPred));
    return site.graph.Make(Op::kSelect, site.shape, {wide, site.operands[1], site.operands[2]});
  }
  return nullptr;
}

// A complex number assembled from its own parts.
Instr* SimplifyComplex(const Site& site) {
  bool parts = site.x()->op() == Op::kReal && site.y()->op() == Op::kImag &&
               site.x()->operand(0) == site.y()->operand(0) &&
               site.x()->operand(0)->shape() == site.shape;
  return parts ? site.x()->operand(0) : nullptr;
}

Instr* SimplifyClamp(const Site& site) {
  std::vector<Instr*> operands(site.operands.begin(), site.operands.end());
  bool changed = false;
  for (size_t i : {0, 2}) {
    if (!operands[i]->shape().IsScalar() || site.shape.IsScalar() || site.shape.HasDynamicDims())
      continue;
    operands[i] = SplatOf(site.graph, operands[i], site.shape);
    changed = true;
  }
  return changed ? site.graph.Make(Op::kClamp, site.shape, operands) : nullptr;
}

}  // namespace

Instr* SimplifyArithmetic(const Site& site) {
  switch (site.op) {
    case Op::kAdd:
      return SimplifyAdd(site);
    case Op::kSubtract:
      return SimplifySubtract(site);
    case Op::kMultiply:
      return SimplifyMultiply(site);
    case Op::kDivide:
      return SimplifyDivide(site);
    case Op::kAnd:
      return SimplifyAnd(site);
    case Op::kOr:
      return SimplifyOr(site);
    case Op::kConvert:
      return SimplifyConvert(site);
    case Op::kCompare:
      return SimplifyCompare(site);
    case Op::kSelect:
      return SimplifySelect(site);
    case Op::kClamp:
      return SimplifyClamp(site);
    case Op::kComplex:
      return SimplifyComplex(site);
    case Op::kReal:
      return site.x()->op() == Op::kComplex ? site.x()->operand(0) : nullptr;
    case Op::kImag:
      return site.x()->op() == Op::kComplex ? site.x()->operand(1) : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace tokamak
