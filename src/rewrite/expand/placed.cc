#include "rewrite/expand/placed.h"

#include <algorithm>

#include "rewrite/replace.h"

namespace tokamak {

Instr* PlacedTerms::Make(Op op, const Shape& shape, std::vector<Instr*> operands,
                         const Attrs& attrs, Computation* called) {
  Shape plain = op == Op::kTuple ? shape : shape.WithoutLayout();
  Instr* made = AppendLike(*of_, op, std::move(plain), std::move(operands), attrs);
  if (called != nullptr) made->set_called({called});
  made_.push_back(made);
  return made;
}

bool PlacedTerms::Replace(Instr* to) {
  bool is_new = std::ranges::count(made_, to) > 0;
  if (is_new && Compatible(of_->shape(), to->shape())) to->set_shape(of_->shape());
  if (!CanReplace(*of_, *to, is_new)) {
    for (size_t i = made_.size(); i-- > 0;) of_->parent()->Remove(made_[i]);
    return false;
  }
  ReplaceBy(of_, to, is_new);
  return true;
}

bool IsOrdinary(const Shape& shape) {
  if (shape.IsTuple()) return std::ranges::all_of(shape.elements(), IsOrdinary);
  return shape.IsArray() && !shape.HasDynamicDims() && shape.quant() == nullptr;
}

}  // namespace tokamak
