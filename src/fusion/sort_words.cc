#include "fusion/sort_words.h"

#include "ir/builder.h"
#include "support/check.h"

namespace tokamak {
namespace {

// Whether the bits of a word from `from` on are below those of another.
Computation* Less(Module& module, ElementType type, int from) {
  Builder b(module, "less_bits");
  Instr *x = b.Parameter(Shape::Scalar(type)), *y = b.Parameter(Shape::Scalar(type));
  auto bits = [&](Instr* word) {
    return b.Append(Op::kShiftRightLogical, {word, b.Scalar(type, from)});
  };
  Result<Computation*> made = b.Finish(b.Compare(bits(x), bits(y), CompareDirection::kLt));
  TOK_CHECK(made.ok(), "the order of words");
  made.value()->is_public = false;
  return made.value();
}

}  // namespace

Instr* SortedByBits(Expansion& make, Instr* words, int from, int to) {
  static_cast<void>(to);
  const Shape shape = words->shape();
  Instr* sorted =
      make.Make(Op::kSort, shape, {words}, SortAttrs{.dimension = 0, .is_stable = true});
  sorted->set_called({Less(*words->parent()->module(), shape.type(), from)});
  return sorted;
}

}  // namespace tokamak
