// Recognizes functions that a frontend expanded before it passed the program on. JAX hands
// chlo.erfc to a plugin as about 70 ops of f32, both branches of each choice included. As one op it
// has the formula of the target, and its cost is known.

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "ir/builder.h"
#include "passes/passes.h"
#include "rewrite/editor.h"
#include "rewrite/match.h"
#include "rewrite/replace.h"

namespace tokamak {
namespace {

// Writes an expansion as a computation of one f32 scalar.
class ExpansionBuilder {
 public:
  explicit ExpansionBuilder(Module& module) : b_(module, "expansion") {}

  // StableHLO's ChloLegalizeToStablehlo, of f32. The coefficients are those of Cephes' erfcf.
  Computation* Erfc() {
    Instr* x = b_.Parameter(Shape::Scalar(ElementType::kF32));
    Instr *size = b_.Abs(x), *square = b_.Multiply(x, x), *exponent = b_.Negate(square);
    Instr* inverse = b_.Divide(Number(1), square);
    Instr* factor = b_.Multiply(b_.Exp(exponent), b_.Divide(Number(1), size));
    Instr* middle =
        Horner(inverse, {2.326819970068386e-2, -1.387039388740657e-1, 3.687424674597105e-1,
                         -5.824733027278666e-1, 6.210004621745983e-1, -4.944515323274145e-1,
                         3.404879937665872e-1, -2.741127028184656e-1, 5.638259427386472e-1});
    Instr* beyond =
        Horner(inverse, {-1.047766399936249e+1, 1.297719955372516e+1, -7.495518717768503e+0,
                         2.921019019210786e+0, -1.015265279202700e+0, 4.218463358204948e-1,
                         -2.820767439740514e-1, 5.641895067754075e-1});
    Instr* scaled = b_.Multiply(factor, b_.Select(IsLess(size, 2), middle, beyond));
    Instr* positive = b_.Select(IsLess(exponent, -88.7228394), Number(0), scaled);
    Instr* far = b_.Select(IsLess(x, 0), b_.Subtract(Number(2), positive), positive);
    Instr* near = Horner(square, {7.853861353153693e-5, -8.010193625184903e-4, 5.188327685732524e-3,
                                  -2.685381193529856e-2, 1.128358514861418e-1,
                                  -3.761262582423300e-1, 1.128379165726710e+0});
    Instr* erf = b_.Multiply(x, near);
    return b_.FinishValid(b_.Select(IsLess(size, 1), b_.Subtract(Number(1), erf), far));
  }

 private:
  Instr* Number(double value) { return b_.Scalar(ElementType::kF32, value); }
  Instr* IsLess(Instr* x, double y) { return b_.Compare(x, Number(y), CompareDirection::kLt); }
  // The highest power first.
  Instr* Horner(Instr* x, std::initializer_list<double> coefficients) {
    Instr* sum = nullptr;
    for (double coefficient : coefficients) {
      Instr* term = Number(coefficient);
      sum = sum == nullptr ? term : b_.Add(b_.Multiply(sum, x), term);
    }
    return sum;
  }

  Builder b_;
};

// Finds where a computation of one scalar stands, element by element, among other instructions.
class ExpansionMatcher {
 public:
  explicit ExpansionMatcher(const Computation& expansion)
      : expansion_(expansion), matched_(expansion.size()) {}

  // The argument, if `instr` is the expanded function of one; otherwise null.
  Instr* ArgumentOf(Instr* instr) {
    std::ranges::fill(matched_, nullptr);
    if (!Matches(expansion_.root(), instr)) return nullptr;
    return matched_[IndexOf(expansion_.parameter(0))];
  }

 private:
  static size_t IndexOf(const Instr* instr) { return static_cast<size_t>(instr->id()); }

  // Recursion: as deep as the expansion. Equal values may be computed twice, as before cse.
  bool Matches(const Instr* node, Instr* instr) {
    Instr*& known = matched_[IndexOf(node)];
    if (known == instr) return true;
    if (instr->shape().type() != node->shape().type()) return false;
    if (node->op() == Op::kParameter) {
      if (known != nullptr) return false;
    } else if (node->op() == Op::kConstant) {
      const Literal* number = SplatOf(instr);
      double wanted = node->attrs<ConstantAttrs>().literal.DoubleAt(0);
      if (number == nullptr || number->DoubleAt(0) != wanted) return false;
    } else {
      if (instr->op() != node->op()) return false;
      if (node->op() == Op::kCompare &&
          instr->attrs<CompareAttrs>().direction != node->attrs<CompareAttrs>().direction)
        return false;
      for (size_t i = 0; i < node->operand_count(); ++i)
        if (!Matches(node->operand(i), instr->operand(i))) return false;
    }
    known = instr;
    return true;
  }

  const Computation& expansion_;
  std::vector<Instr*> matched_;  // by the ids of the expansion's instructions
};

// The narrow operand, if `instr` rounds an f32 function of it to its own type.
Instr* NarrowArgumentOf(const Instr& instr, ExpansionMatcher& function) {
  ElementType type = instr.shape().type();
  if (instr.op() != Op::kConvert || (type != ElementType::kBF16 && type != ElementType::kF16))
    return nullptr;
  Instr* wide = function.ArgumentOf(instr.operand(0));
  if (wide == nullptr || wide->op() != Op::kConvert) return nullptr;
  Instr* narrow = wide->operand(0);
  return narrow->shape().type() == type && SameDims(narrow->shape(), instr.shape()) ? narrow
                                                                                    : nullptr;
}

}  // namespace

// Replaces StableHLO's expansion of erfc by the op, where the argument and the result have 16 bits.
// (The formula of f32 is longer than the expansion.) The result is the function, rounded once; the
// expansion is off by a few ulp of f32 before it is rounded.
Result<Changed> RecognizeFunctions(Module& module, PassContext& context) {
  Changed changed = Changed::kNo;
  Module expansions("expansions");
  ExpansionMatcher erfc(*ExpansionBuilder(expansions).Erfc());
  for (const auto& computation : module.computations()) {
    if (computation->CountOf(Op::kExp) == 0) continue;
    for (Instr* instr : computation->PostOrder()) {
      if (!IsOrdinary(*instr)) continue;
      Instr* argument = NarrowArgumentOf(*instr, erfc);
      if (argument == nullptr) continue;
      Editor edit(*instr);
      if (!edit.TryReplace(edit.MakeShaped(Op::kErfc, instr->shape().WithoutLayout(), {argument})))
        continue;
      context.Accepted("function.erfc", *instr, argument);
      RemoveUnused(instr);
      changed = Changed::kYes;
    }
  }
  return changed;
}

}  // namespace tokamak
