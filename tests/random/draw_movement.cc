// Ops that move elements, alone and in the pairs that cancel, merge or pass
// through each other.
#include <algorithm>

#include "random/draft.h"

namespace tokamak::fuzz {
namespace {

// ---- one op on x; null when there is nothing to do

Instr* Transposed(Draft& draft, Instr* x) {
  if (x == nullptr || x->shape().rank() < 1) return nullptr;
  return draft.Put(Op::kTranspose, {x}, DimensionsAttrs{draft.Permutation(x->shape().rank())});
}

Instr* Reversed(Draft& draft, Instr* x) {
  if (x == nullptr) return nullptr;
  Dims dimensions;
  for (int64_t d = 0; d < x->shape().rank(); ++d)
    if (draft.random().Percent(60)) dimensions.push_back(d);
  return draft.Put(Op::kReverse, {x}, DimensionsAttrs{dimensions});
}

// Splits a dimension, joins two, adds one or drops one.
Instr* Reshaped(Draft& draft, Instr* x) {
  if (x == nullptr) return nullptr;
  Dims dims = x->shape().dims();
  switch (draft.random().Below(5)) {
    case 0:
      return draft.Reshape(x, {x->shape().ElementCount()});
    case 1: {
      dims.insert(dims.begin() + draft.random().Below(x->shape().rank() + 1), 1);
      return draft.Reshape(x, dims);
    }
    case 2: {
      dims.erase(std::remove(dims.begin(), dims.end(), 1), dims.end());
      return draft.Reshape(x, dims);
    }
    case 3: {
      if (dims.size() < 2) return nullptr;
      size_t d = At(draft.random().Below(x->shape().rank() - 1));
      dims[d] *= dims[d + 1];
      dims.erase(dims.begin() + static_cast<ptrdiff_t>(d) + 1);
      return draft.Reshape(x, dims);
    }
    default: {
      if (dims.empty()) return nullptr;
      size_t d = At(draft.random().Below(x->shape().rank()));
      int64_t part = draft.random().Pick({2, 3, 4});
      if (dims[d] == 0 || dims[d] % part != 0) return nullptr;
      dims[d] /= part;
      dims.insert(dims.begin() + static_cast<ptrdiff_t>(d), part);
      return draft.Reshape(x, dims);
    }
  }
}

Instr* Sliced(Draft& draft, Instr* x) {
  if (x == nullptr) return nullptr;
  SliceAttrs attrs;
  for (int64_t size : x->shape().dims()) {
    bool whole = draft.random().Percent(40);
    int64_t start = whole ? 0 : draft.random().Between(0, std::max<int64_t>(size - 1, 0));
    int64_t limit = whole ? size : draft.random().Between(std::min(start + 1, size), size);
    attrs.starts.push_back(std::min(start, limit));
    attrs.limits.push_back(limit);
    attrs.strides.push_back(draft.random().Percent(75) ? 1 : draft.random().Between(1, 3));
  }
  return draft.Put(Op::kSlice, {x}, attrs);
}

Instr* Padded(Draft& draft, Instr* x) {
  if (x == nullptr) return nullptr;
  PadAttrs attrs;
  for (int64_t size : x->shape().dims()) {
    bool none = draft.random().Percent(40);
    attrs.low.push_back(none ? 0 : draft.random().Between(-1, 2));
    attrs.high.push_back(none ? 0 : draft.random().Between(-1, 2));
    attrs.interior.push_back(draft.random().Percent(80) ? 0 : draft.random().Between(0, 2));
    if (size + attrs.low.back() + attrs.high.back() < 0) attrs.low.back() = 0;
  }
  Shape scalar = Shape::Scalar(x->shape().type());
  Instr* value = draft.random().Percent(70) ? draft.Constant(scalar) : draft.Like(scalar);
  return draft.Put(Op::kPad, {x, value}, attrs);
}

// Its dimensions among others, in order or not; ones may grow.
Instr* Spread(Draft& draft, Instr* x) {
  if (x == nullptr) return nullptr;
  const Dims& own = x->shape().dims();
  int64_t rank = static_cast<int64_t>(own.size()) + draft.random().Between(0, 2);
  Dims places = draft.Permutation(rank), dims(At(rank));
  for (int64_t& dim : dims) dim = draft.random().Between(1, 4);
  places.resize(own.size());
  if (draft.random().Percent(80)) std::sort(places.begin(), places.end());
  for (size_t i = 0; i < own.size(); ++i)
    if (own[i] != 1 || draft.random().Percent(50)) dims[At(places[i])] = own[i];
  return draft.Broadcast(x, dims, places);
}

// x beside others along a dimension.
Instr* Joined(Draft& draft, Instr* x) {
  if (x == nullptr || x->shape().rank() < 1) return nullptr;
  int64_t along = draft.random().Below(x->shape().rank());
  std::vector<Instr*> parts;
  for (int64_t i = draft.random().Between(1, 4); i > 0; --i) {
    Dims dims = x->shape().dims();
    if (draft.random().Percent(60)) dims[At(along)] = draft.random().Between(0, 3);
    parts.push_back(draft.random().Percent(25) ? x
                                               : draft.Like(Shape::Array(x->shape().type(), dims)));
  }
  parts[At(draft.random().Below(static_cast<int64_t>(parts.size())))] = x;
  return draft.Put(Op::kConcatenate, parts, DimensionAttrs{along});
}

using Move = Instr* (*)(Draft&, Instr*);
constexpr Move kMoves[] = {Transposed, Reversed, Reshaped, Sliced, Padded, Spread, Joined};

template <Move move>
bool Draw(Draft& draft) {
  return move(draft, draft.AnyOfRank(1)) != nullptr;
}

bool DrawSpread(Draft& draft) {
  return Spread(draft, draft.Any()) != nullptr;
}

// Several in a row, of one kind or of any.
bool DrawChain(Draft& draft) {
  Instr* x = draft.AnyOfRank(1);
  Move one = kMoves[draft.random().Below(std::size(kMoves))];
  bool same = draft.random().Percent(50);
  bool any = false;
  for (int64_t i = draft.random().Between(2, 4); i > 0; --i) {
    Move move = same ? one : kMoves[draft.random().Below(std::size(kMoves))];
    Instr* next = move(draft, x);
    if (next == nullptr) continue;
    any = true;
    x = next;
  }
  return any;
}

// A move, something elementwise, and another move.
bool DrawThrough(Draft& draft) {
  Instr* x = draft.AnyOfRank(1);
  Instr* moved = kMoves[draft.random().Below(std::size(kMoves))](draft, x);
  if (moved == nullptr) return false;
  Op op = draft.random().Pick({Op::kNegate, Op::kAbs, Op::kAdd, Op::kMultiply, Op::kNot});
  if (!InfoOf(op).Takes(moved->shape().type())) op = Op::kMaximum;
  std::vector<Instr*> operands{moved};
  if (InfoOf(op).arity == 2)
    operands.push_back(draft.random().Percent(40) ? moved : draft.Like(moved->shape()));
  Instr* y = draft.Put(op, operands);
  return kMoves[draft.random().Below(std::size(kMoves))](draft, y) != nullptr || y != nullptr;
}

// A permutation and its inverse, or nearly.
bool DrawTransposeBack(Draft& draft) {
  Instr* x = draft.AnyOfRank(draft.random().Percent(60) ? 3 : 2);
  if (x->shape().rank() < 2) return false;
  Dims there = draft.Permutation(x->shape().rank()), back(there.size());
  for (size_t i = 0; i < there.size(); ++i) back[At(there[i])] = static_cast<int64_t>(i);
  if (draft.random().Percent(40)) draft.random().Shuffle(back);
  Instr* moved = draft.Put(Op::kTranspose, {x}, DimensionsAttrs{there});
  return draft.Put(Op::kTranspose, {moved}, DimensionsAttrs{back}) != nullptr;
}

// x cut into pieces that are put together again, all and in order, or nearly.
bool DrawCutAndJoin(Draft& draft) {
  Instr* x = draft.AnyOfRank(1);
  int64_t along = draft.random().Below(x->shape().rank());
  int64_t size = x->shape().dim(At(along));
  std::vector<Instr*> parts;
  int64_t at = draft.random().Percent(80) ? 0 : draft.random().Between(0, 1);
  while (at < size && parts.size() < 4) {
    int64_t end = parts.size() == 3 ? size : std::min(size, at + draft.random().Between(1, 3));
    SliceAttrs attrs{Dims(x->shape().dims().size(), 0), x->shape().dims(),
                     Dims(x->shape().dims().size(), 1)};
    attrs.starts[At(along)] = at;
    attrs.limits[At(along)] = end;
    parts.push_back(draft.Put(Op::kSlice, {x}, attrs));
    at = draft.random().Percent(92) ? end : end + 1;
  }
  if (parts.empty()) return false;
  if (draft.random().Percent(15)) draft.random().Shuffle(parts);
  int64_t join = draft.random().Percent(90) ? along : draft.random().Below(x->shape().rank());
  return draft.Put(Op::kConcatenate, parts, DimensionAttrs{join}) != nullptr;
}

// A slice of a concatenate: of one part, of several, across a boundary.
bool DrawSliceOfJoin(Draft& draft) {
  Instr* joined = Joined(draft, draft.AnyOfRank(1));
  return Sliced(draft, joined) != nullptr;
}

// A pad of a pad, of one value or of two; a slice of a pad.
bool DrawPadPad(Draft& draft) {
  Instr* inner = Padded(draft, draft.AnyOfRank(1));
  if (inner == nullptr) return false;
  if (draft.random().Percent(40)) return Sliced(draft, inner) != nullptr;
  if (draft.random().Percent(50)) return Padded(draft, inner) != nullptr;
  PadAttrs attrs;
  for (int64_t d = 0; d < inner->shape().rank(); ++d) {
    attrs.low.push_back(draft.random().Between(-1, 2));
    attrs.high.push_back(draft.random().Between(0, 2));
    attrs.interior.push_back(draft.random().Percent(80) ? 0 : 1);
  }
  return draft.Put(Op::kPad, {inner, inner->operand(1)}, attrs) != nullptr;
}

// There and back by reshape; a reshape between transposes.
bool DrawReshapeBack(Draft& draft) {
  Instr* x = draft.AnyOfRank(1);
  Instr* there = Reshaped(draft, x);
  if (there == nullptr) return false;
  if (draft.random().Percent(30)) there = Transposed(draft, there);
  return draft.Reshape(there, x->shape().dims()) != nullptr;
}

constexpr Drawer kMovementDrawers[] = {
    {"transpose", 30, 1, Draw<Transposed>}, {"reverse", 15, 1, Draw<Reversed>},
    {"reshape", 35, 1, Draw<Reshaped>},     {"slice", 35, 1, Draw<Sliced>},
    {"pad", 25, 2, Draw<Padded>},           {"broadcast", 40, 1, DrawSpread},
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
