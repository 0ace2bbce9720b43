// Ops that move elements, alone and in pairs that cancel, merge or commute.
#include <algorithm>

#include "random/program_builder.h"

namespace tokamak::fuzz {
namespace {

// ---- one op on x; null if it does not apply

Instr* Transposed(ProgramBuilder& builder, Instr* x) {
  if (x == nullptr || x->shape().rank() < 1) return nullptr;
  return builder.Put(Op::kTranspose, {x}, DimensionsAttrs{builder.Permutation(x->shape().rank())});
}

Instr* Reversed(ProgramBuilder& builder, Instr* x) {
  if (x == nullptr) return nullptr;
  Dims dimensions;
  for (int64_t d = 0; d < x->shape().rank(); ++d)
    if (builder.random().Percent(60)) dimensions.push_back(d);
  return builder.Put(Op::kReverse, {x}, DimensionsAttrs{dimensions});
}

// Splits a dimension, joins two, adds one or drops one.
Instr* Reshaped(ProgramBuilder& builder, Instr* x) {
  if (x == nullptr) return nullptr;
  Dims dims = x->shape().dims();
  switch (builder.random().Below(5)) {
    case 0:
      return builder.Reshape(x, {x->shape().ElementCount()});
    case 1: {
      dims.insert(dims.begin() + builder.random().Below(x->shape().rank() + 1), 1);
      return builder.Reshape(x, dims);
    }
    case 2: {
      dims.erase(std::remove(dims.begin(), dims.end(), 1), dims.end());
      return builder.Reshape(x, dims);
    }
    case 3: {
      if (dims.size() < 2) return nullptr;
      size_t d = At(builder.random().Below(x->shape().rank() - 1));
      dims[d] *= dims[d + 1];
      dims.erase(dims.begin() + static_cast<ptrdiff_t>(d) + 1);
      return builder.Reshape(x, dims);
    }
    default: {
      if (dims.empty()) return nullptr;
      size_t d = At(builder.random().Below(x->shape().rank()));
      int64_t part = builder.random().Pick({2, 3, 4});
      if (dims[d] == 0 || dims[d] % part != 0) return nullptr;
      dims[d] /= part;
      dims.insert(dims.begin() + static_cast<ptrdiff_t>(d), part);
      return builder.Reshape(x, dims);
    }
  }
}

Instr* Sliced(ProgramBuilder& builder, Instr* x) {
  if (x == nullptr) return nullptr;
  SliceAttrs attrs;
  for (int64_t size : x->shape().dims()) {
    bool whole = builder.random().Percent(40);
    int64_t start = whole ? 0 : builder.random().Between(0, std::max<int64_t>(size - 1, 0));
    int64_t limit = whole ? size : builder.random().Between(std::min(start + 1, size), size);
    attrs.starts.push_back(std::min(start, limit));
    attrs.limits.push_back(limit);
    attrs.strides.push_back(builder.random().Percent(75) ? 1 : builder.random().Between(1, 3));
  }
  return builder.Put(Op::kSlice, {x}, attrs);
}

Instr* Padded(ProgramBuilder& builder, Instr* x) {
  if (x == nullptr) return nullptr;
  PadAttrs attrs;
  for (int64_t size : x->shape().dims()) {
    bool none = builder.random().Percent(40);
    attrs.low.push_back(none ? 0 : builder.random().Between(-1, 2));
    attrs.high.push_back(none ? 0 : builder.random().Between(-1, 2));
    attrs.interior.push_back(builder.random().Percent(80) ? 0 : builder.random().Between(0, 2));
    if (size + attrs.low.back() + attrs.high.back() < 0) attrs.low.back() = 0;
  }
  Shape scalar = Shape::Scalar(x->shape().type());
  Instr* value = builder.random().Percent(70) ? builder.Constant(scalar) : builder.Like(scalar);
  return builder.Put(Op::kPad, {x, value}, attrs);
}

// Places its dimensions among others, in order or not; size-1 dimensions may grow.
Instr* BroadcastTo(ProgramBuilder& builder, Instr* x) {
  if (x == nullptr) return nullptr;
  const Dims& own = x->shape().dims();
  int64_t rank = static_cast<int64_t>(own.size()) + builder.random().Between(0, 2);
  Dims broadcast_dims = builder.Permutation(rank), dims(At(rank));
  for (int64_t& dim : dims) dim = builder.random().Between(1, 4);
  broadcast_dims.resize(own.size());
  if (builder.random().Percent(80)) std::sort(broadcast_dims.begin(), broadcast_dims.end());
  for (size_t i = 0; i < own.size(); ++i)
    if (own[i] != 1 || builder.random().Percent(50)) dims[At(broadcast_dims[i])] = own[i];
  return builder.Broadcast(x, dims, broadcast_dims);
}

// Concatenates x with others along a dimension.
Instr* Joined(ProgramBuilder& builder, Instr* x) {
  if (x == nullptr || x->shape().rank() < 1) return nullptr;
  int64_t along = builder.random().Below(x->shape().rank());
  std::vector<Instr*> parts;
  for (int64_t i = builder.random().Between(1, 4); i > 0; --i) {
    Dims dims = x->shape().dims();
    if (builder.random().Percent(60)) dims[At(along)] = builder.random().Between(0, 3);
    parts.push_back(
        builder.random().Percent(25) ? x : builder.Like(Shape::Array(x->shape().type(), dims)));
  }
  parts[At(builder.random().Below(static_cast<int64_t>(parts.size())))] = x;
  return builder.Put(Op::kConcatenate, parts, DimensionAttrs{along});
}

using Move = Instr* (*)(ProgramBuilder&, Instr*);
constexpr Move kMoves[] = {Transposed, Reversed, Reshaped, Sliced, Padded, BroadcastTo, Joined};

template <Move move>
bool Draw(ProgramBuilder& builder) {
  return move(builder, builder.AnyOfRank(1)) != nullptr;
}

bool DrawBroadcast(ProgramBuilder& builder) {
  return BroadcastTo(builder, builder.Any()) != nullptr;
}

// Several in sequence, of one kind or of any.
bool DrawChain(ProgramBuilder& builder) {
  Instr* x = builder.AnyOfRank(1);
  Move one = kMoves[builder.random().Below(std::size(kMoves))];
  bool same = builder.random().Percent(50);
  bool any = false;
  for (int64_t i = builder.random().Between(2, 4); i > 0; --i) {
    Move move = same ? one : kMoves[builder.random().Below(std::size(kMoves))];
    Instr* next = move(builder, x);
    if (next == nullptr) continue;
    any = true;
    x = next;
  }
  return any;
}

// A move, something elementwise, and another move.
bool DrawThrough(ProgramBuilder& builder) {
  Instr* x = builder.AnyOfRank(1);
  Instr* moved = kMoves[builder.random().Below(std::size(kMoves))](builder, x);
  if (moved == nullptr) return false;
  Op op = builder.random().Pick({Op::kNegate, Op::kAbs, Op::kAdd, Op::kMultiply, Op::kNot});
  if (!InfoOf(op).Takes(moved->shape().type())) op = Op::kMaximum;
  std::vector<Instr*> operands{moved};
  if (InfoOf(op).arity == 2)
    operands.push_back(builder.random().Percent(40) ? moved : builder.Like(moved->shape()));
  Instr* y = builder.Put(op, operands);
  return kMoves[builder.random().Below(std::size(kMoves))](builder, y) != nullptr || y != nullptr;
}

// A permutation and its inverse, or nearly.
bool DrawTransposeBack(ProgramBuilder& builder) {
  Instr* x = builder.AnyOfRank(builder.random().Percent(60) ? 3 : 2);
  if (x->shape().rank() < 2) return false;
  Dims there = builder.Permutation(x->shape().rank()), back(there.size());
  for (size_t i = 0; i < there.size(); ++i) back[At(there[i])] = static_cast<int64_t>(i);
  if (builder.random().Percent(40)) builder.random().Shuffle(back);
  Instr* moved = builder.Put(Op::kTranspose, {x}, DimensionsAttrs{there});
  return builder.Put(Op::kTranspose, {moved}, DimensionsAttrs{back}) != nullptr;
}

// x sliced into segments that are concatenated again, all and in order, or nearly.
bool DrawCutAndJoin(ProgramBuilder& builder) {
  Instr* x = builder.AnyOfRank(1);
  int64_t along = builder.random().Below(x->shape().rank());
  int64_t size = x->shape().dim(At(along));
  std::vector<Instr*> parts;
  int64_t at = builder.random().Percent(80) ? 0 : builder.random().Between(0, 1);
  while (at < size && parts.size() < 4) {
    int64_t end = parts.size() == 3 ? size : std::min(size, at + builder.random().Between(1, 3));
    SliceAttrs attrs{Dims(x->shape().dims().size(), 0), x->shape().dims(),
                     Dims(x->shape().dims().size(), 1)};
    attrs.starts[At(along)] = at;
    attrs.limits[At(along)] = end;
    parts.push_back(builder.Put(Op::kSlice, {x}, attrs));
    at = builder.random().Percent(92) ? end : end + 1;
  }
  if (parts.empty()) return false;
  if (builder.random().Percent(15)) builder.random().Shuffle(parts);
  int64_t join = builder.random().Percent(90) ? along : builder.random().Below(x->shape().rank());
  return builder.Put(Op::kConcatenate, parts, DimensionAttrs{join}) != nullptr;
}

// A slice of a concatenate: within one operand, over several, across a boundary.
bool DrawSliceOfJoin(ProgramBuilder& builder) {
  Instr* joined = Joined(builder, builder.AnyOfRank(1));
  return Sliced(builder, joined) != nullptr;
}

// A pad of a pad, of one value or of two; a slice of a pad.
bool DrawPadPad(ProgramBuilder& builder) {
  Instr* inner = Padded(builder, builder.AnyOfRank(1));
  if (inner == nullptr) return false;
  if (builder.random().Percent(40)) return Sliced(builder, inner) != nullptr;
  if (builder.random().Percent(50)) return Padded(builder, inner) != nullptr;
  PadAttrs attrs;
  for (int64_t d = 0; d < inner->shape().rank(); ++d) {
    attrs.low.push_back(builder.random().Between(-1, 2));
    attrs.high.push_back(builder.random().Between(0, 2));
    attrs.interior.push_back(builder.random().Percent(80) ? 0 : 1);
  }
  return builder.Put(Op::kPad, {inner, inner->operand(1)}, attrs) != nullptr;
}

// There and back by reshape; a reshape between transposes.
bool DrawReshapeBack(ProgramBuilder& builder) {
  Instr* x = builder.AnyOfRank(1);
  Instr* there = Reshaped(builder, x);
  if (there == nullptr) return false;
  if (builder.random().Percent(30)) there = Transposed(builder, there);
  return builder.Reshape(there, x->shape().dims()) != nullptr;
}

constexpr Drawer kMovementDrawers[] = {
    {"transpose", 30, 1, Draw<Transposed>}, {"reverse", 15, 1, Draw<Reversed>},
    {"reshape", 35, 1, Draw<Reshaped>},     {"slice", 35, 1, Draw<Sliced>},
    {"pad", 25, 2, Draw<Padded>},           {"broadcast", 40, 1, DrawBroadcast},
    {"concatenate", 30, 4, Draw<Joined>},
};

constexpr Drawer kPairDrawers[] = {
    {"chain", 30, 5, DrawChain},
    {"through", 30, 4, DrawThrough},
    {"transpose-back", 22, 2, DrawTransposeBack},
    {"cut-and-join", 20, 5, DrawCutAndJoin},
    {"slice-of-join", 20, 4, DrawSliceOfJoin},
    {"pad-pad", 18, 4, DrawPadPad},
    {"reshape-back", 18, 3, DrawReshapeBack},
};

}  // namespace

std::span<const Drawer> MovementDrawers() {
  return kMovementDrawers;
}

std::span<const Drawer> MovementPairDrawers() {
  return kPairDrawers;
}

}  // namespace tokamak::fuzz
