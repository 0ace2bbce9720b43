#include "driver/testing/corrupt_values.h"

#include <cmath>
#include <cstring>
#include <set>

namespace tokamak {
namespace {

// A number far from `value`, beyond the tolerance of any check.
double ChangedValue(double value) {
  if (!std::isfinite(value)) return 1.0;  // f8e8m0fnu has no zero; it reads as NaN
  return std::abs(value) < 1 ? 2.0 : 0.0;
}

// A copy with the first element changed; nullopt if there is none.
std::optional<Literal> Corrupted(const Literal& literal) {
  ElementType type = literal.type();
  if (!literal.shape().IsArray() || literal.shape().ElementCount() == 0) return std::nullopt;
  auto width = static_cast<size_t>(BytesOf(type));
  std::vector<std::byte> data(literal.data().data(), literal.data().data() + literal.data().size());
  if (IsReal(type) || IsComplex(type)) {
    ElementType part = RealPartOf(type);
    double old = IsComplex(type) ? literal.ComplexAt(0).real() : literal.DoubleAt(0);
    uint64_t bits = EncodeFloat(part, ChangedValue(old));
    std::memcpy(data.data(), &bits, static_cast<size_t>(BytesOf(part)));
  } else {
    data[0] ^= std::byte{1};
  }
  if (data.size() == width)
    return Literal::Splat(literal.shape(), Bytes::FromVector(std::move(data)));
  return Literal::Array(literal.shape(), Bytes::FromVector(std::move(data)));
}

// The constant that an operand refers to: itself, or what a called function returns.
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

class ConstantCorrupter {
 public:
  explicit ConstantCorrupter(Module& module) : module_(module) {}

  CorruptionCount CorruptValue() {
    for (const auto& computation : module_.computations())
      for (Instr* instr : computation->Instrs())
        if (instr->op() == Op::kCheck || instr->op() == Op::kCheckEq)
          ++(CorruptCheck(instr) ? count_.corrupted : count_.untouched);
    return count_;
  }

 private:
  bool CorruptCheck(Instr* check) {
    if (check->op() == Op::kCheck && check->attrs<CheckAttrs>().expected) {
      CheckAttrs attrs = check->attrs<CheckAttrs>();
      std::optional<Literal> corrupted = Corrupted(*attrs.expected);
      if (!corrupted) return false;
      attrs.expected = std::move(*corrupted);
      check->set_attrs(std::move(attrs));
      return true;
    }
    // The expected value is usually the last operand; in some checks it is the first.
    for (size_t i = check->operand_count(); i-- > 0;) {
      Instr* constant = ConstantBehind(check->operand(i));
      if (constant == nullptr || constant->users().size() > 1) continue;
      if (done_.count(constant) != 0) return true;
      std::optional<Literal> corrupted = Corrupted(constant->attrs<ConstantAttrs>().literal);
      if (!corrupted) continue;
      constant->set_attrs(ConstantAttrs{std::move(*corrupted)});
      done_.insert(constant);
      return true;
    }
    return false;
  }

  Module& module_;
  CorruptionCount count_;
  std::set<const Instr*> done_;
};

}  // namespace

CorruptionCount CorruptExpected(Module& module) {
  return ConstantCorrupter(module).CorruptValue();
}

}  // namespace tokamak
