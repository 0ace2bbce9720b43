#pragma once

#include "ir/attrs.h"
#include "ir/op.h"

namespace tokamak {

// Calls fn(const XAttrs&) with the attribute struct of the op's row in ops.def.
template <typename Fn>
decltype(auto) VisitAttrs(Op op, const Attrs& attrs, Fn&& fn) {
  switch (op) {
#define TOK_OP(id, name, mlir, arity, types, shape, traits, flops, attrs_struct, meaning) \
  case Op::k##id:                                                                         \
    return fn(attrs.As<attrs_struct>());
#include "ir/ops.def"
  }
  __builtin_unreachable();
}

}  // namespace tokamak
