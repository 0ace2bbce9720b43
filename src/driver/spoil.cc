#include "driver/spoil.h"

#include <cmath>
#include <cstring>
#include <set>

namespace tokamak {
namespace {

// A number far from `value`, whatever the tolerance of a check.
double FarFrom(double value) {
  if (!std::isfinite(value)) return 1.0;  // f8e8m0fnu spells its zero NaN
  return std::abs(value) < 1 ? 2.0 : 0.0;
}

// The first element changed, or nothing when there is none.
std::optional<Literal> Spoiled(const Literal& literal) {
  ElementType type = literal.type();
  if (!literal.shape().IsArray() || literal.shape().ElementCount() == 0) return std::nullopt;
  auto width = static_cast<size_t>(BytesOf(type));
  std::vector<std::byte> data(literal.data().data(), literal.data().data() + literal.data().size());
  if (IsReal(type) || IsComplex(type)) {
    ElementType part = RealPartOf(type);
    double old = IsComplex(type) ? literal.ComplexAt(0).real() : literal.DoubleAt(0);
    uint64_t bits = EncodeFloat(part, FarFrom(old));
    std::memcpy(data.data(), &bits, static_cast<size_t>(BytesOf(part)));
  } else {
    data[0] ^= std::byte{1};
  }
  if (data.size() == width)
    return Literal::Splat(literal.shape(), Bytes::FromVector(std::move(data)));
  return Literal::Array(literal.shape(), Bytes::FromVector(std::move(data)));
}

// The constant behind an operand: itself, or what a called function returns.
Instr* ConstantBehind(Instr* instr) {
  int64_t element = -1;
  for (int depth = 0; depth < kMaxNesting && instr != nullptr; ++depth) {
    switch (instr->op()) {
      case Op::kConstant:
        return instr;
      case Op::kCall:
        instr = instr->called(0)->root();
        break;
      case Op::kGetTupleElement:
        element = instr->attrs<TupleIndexAttrs>().index;
        instr = instr->operand(0);
        break;
      case Op::kTuple:
        if (element < 0 || element >= static_cast<int64_t>(instr->operand_count())) return nullptr;
        instr = instr->operand(static_cast<size_t>(element));
        element = -1;
        break;
      default:
        return nullptr;
    }
  }
  return nullptr;
}

class Spoiler {
 public:
  explicit Spoiler(Module& module) : module_(module) {}

  SpoilCount Spoil() {
    for (const auto& computation : module_.computations())
      for (Instr* instr : computation->Instrs())
        if (instr->op() == Op::kCheck || instr->op() == Op::kCheckEq)
          ++(SpoilCheck(instr) ? count_.spoiled : count_.untouched);
    return count_;
  }

 private:
  bool SpoilCheck(Instr* check) {
    if (check->op() == Op::kCheck && check->attrs<CheckAttrs>().expected) {
      CheckAttrs attrs = check->attrs<CheckAttrs>();
      std::optional<Literal> spoiled = Spoiled(*attrs.expected);
      if (!spoiled) return false;
      attrs.expected = std::move(*spoiled);
      check->set_attrs(std::move(attrs));
      return true;
    }
    // The expected value is the last operand by custom, the first in some.
    for (size_t i = check->operand_count(); i-- > 0;) {
      Instr* constant = ConstantBehind(check->operand(i));
      if (constant == nullptr || constant->users().size() > 1) continue;
      if (done_.count(constant) != 0) return true;
      std::optional<Literal> spoiled = Spoiled(constant->attrs<ConstantAttrs>().literal);
      if (!spoiled) continue;
      constant->set_attrs(ConstantAttrs{std::move(*spoiled)});
      done_.insert(constant);
      return true;
    }
    return false;
  }

  Module& module_;
  SpoilCount count_;
  std::set<const Instr*> done_;
};

}  // namespace

SpoilCount SpoilExpected(Module& module) {
  return Spoiler(module).Spoil();
}

}  // namespace tokamak
