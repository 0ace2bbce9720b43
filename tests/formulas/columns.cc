#include "formulas/columns.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

namespace tokamak {
namespace {

template <typename T>
T Get(Bits bits) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(bits);
  else
    return static_cast<T>(bits);
}
template <typename T>
Bits Put(T value) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<uint32_t>(value);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<uint64_t>(value);
  else
    return static_cast<Bits>(static_cast<std::make_unsigned_t<T>>(value));
}

// One loop per primitive: fn(x), fn(x, y) or fn(x, y, z) over the rows.
template <typename T, typename Fn>
void Map1(const Column& x, Column& out, Fn fn) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = fn(Get<T>(x[i]));
}
template <typename T, typename Fn>
void Map2(const Column& x, const Column& y, Column& out, Fn fn) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = fn(Get<T>(x[i]), Get<T>(y[i]));
}

// Returns false if the primitive is not supported for floats here.
template <typename T>
bool FloatPrim(Prim prim, const Column* v[3], Column& out) {
  const Column &x = *v[0], &y = *v[1], &z = *v[2];
  switch (prim) {
    case Prim::kAdd:
      return Map2<T>(x, y, out, [](T a, T b) { return Put<T>(a + b); }), true;
    case Prim::kSub:
      return Map2<T>(x, y, out, [](T a, T b) { return Put<T>(a - b); }), true;
    case Prim::kMul:
      return Map2<T>(x, y, out, [](T a, T b) { return Put<T>(a * b); }), true;
    case Prim::kDiv:
      return Map2<T>(x, y, out, [](T a, T b) { return Put<T>(a / b); }), true;
    case Prim::kMin:
      return Map2<T>(x, y, out, [](T a, T b) { return Put<T>(a < b ? a : b); }), true;
    case Prim::kMax:
      return Map2<T>(x, y, out, [](T a, T b) { return Put<T>(a > b ? a : b); }), true;
    case Prim::kFma:
      for (size_t i = 0; i < out.size(); ++i)
        out[i] = Put<T>(std::fma(Get<T>(x[i]), Get<T>(y[i]), Get<T>(z[i])));
      return true;
    case Prim::kSqrt:
      return Map1<T>(x, out, [](T a) { return Put<T>(std::sqrt(a)); }), true;
    case Prim::kFloor:
      return Map1<T>(x, out, [](T a) { return Put<T>(std::floor(a)); }), true;
    case Prim::kCeil:
      return Map1<T>(x, out, [](T a) { return Put<T>(std::ceil(a)); }), true;
    case Prim::kTrunc:
      return Map1<T>(x, out, [](T a) { return Put<T>(std::trunc(a)); }), true;
    case Prim::kRoundEven:
      return Map1<T>(x, out, [](T a) { return Put<T>(std::nearbyint(a)); }), true;
    case Prim::kAbs:
      return Map1<T>(x, out, [](T a) { return Put<T>(std::fabs(a)); }), true;
    case Prim::kNeg:
      return Map1<T>(x, out, [](T a) { return Put<T>(-a); }), true;
    case Prim::kCopySign:
      return Map2<T>(x, y, out, [](T a, T b) { return Put<T>(std::copysign(a, b)); }), true;
    case Prim::kLt:
      return Map2<T>(x, y, out, [](T a, T b) -> Bits { return a < b; }), true;
    case Prim::kLe:
      return Map2<T>(x, y, out, [](T a, T b) -> Bits { return a <= b; }), true;
    case Prim::kEq:
      return Map2<T>(x, y, out, [](T a, T b) -> Bits { return a == b; }), true;
    case Prim::kNe:
      return Map2<T>(x, y, out, [](T a, T b) -> Bits { return a != b; }), true;
    default:
      return false;
  }
}

// Integers of 32 and 64 bits, except for unspecified results.
template <typename T>
bool IntPrim(Prim prim, const Column* v[3], Column& out) {
  using U = std::make_unsigned_t<T>;
  const Column &x = *v[0], &y = *v[1];
  switch (prim) {
    case Prim::kAdd:
      return Map2<U>(x, y, out, [](U a, U b) { return Put<U>(a + b); }), true;
    case Prim::kSub:
      return Map2<U>(x, y, out, [](U a, U b) { return Put<U>(a - b); }), true;
    case Prim::kMul:
      return Map2<U>(x, y, out, [](U a, U b) { return Put<U>(a * b); }), true;
    case Prim::kAnd:
      return Map2<U>(x, y, out, [](U a, U b) { return Put<U>(a & b); }), true;
    case Prim::kOr:
      return Map2<U>(x, y, out, [](U a, U b) { return Put<U>(a | b); }), true;
    case Prim::kXor:
      return Map2<U>(x, y, out, [](U a, U b) { return Put<U>(a ^ b); }), true;
    case Prim::kShl:
    case Prim::kShr:
      if (std::any_of(y.begin(), y.end(), [](Bits by) { return by >= sizeof(T) * 8; }))
        return false;  // unspecified: the slow path reports it
      if (prim == Prim::kShl)
        return Map2<U>(x, y, out, [](U a, U b) { return Put<U>(a << b); }), true;
      return Map2<T>(x, y, out, [](T a, T b) { return Put<T>(a >> b); }), true;
    case Prim::kMin:
      return Map2<T>(x, y, out, [](T a, T b) { return Put<T>(a < b ? a : b); }), true;
    case Prim::kMax:
      return Map2<T>(x, y, out, [](T a, T b) { return Put<T>(a > b ? a : b); }), true;
    case Prim::kLt:
      return Map2<T>(x, y, out, [](T a, T b) -> Bits { return a < b; }), true;
    case Prim::kLe:
      return Map2<T>(x, y, out, [](T a, T b) -> Bits { return a <= b; }), true;
    case Prim::kEq:
      return Map2<T>(x, y, out, [](T a, T b) -> Bits { return a == b; }), true;
    case Prim::kNe:
      return Map2<T>(x, y, out, [](T a, T b) -> Bits { return a != b; }), true;
    default:
      return false;
  }
}

bool Converts(ScalarType to, ScalarType from, const Column& x, Column& out) {
  using enum ScalarType;
  if (to == kF64 && from == kF32)
    return Map1<float>(x, out, [](float a) { return Put<double>(a); }), true;
  if (to == kF32 && from == kF64)
    return Map1<double>(x, out, [](double a) { return Put(static_cast<float>(a)); }), true;
  if (to == kU32 && from == kU64)
    return Map1<uint64_t>(x, out, [](uint64_t a) { return a & 0xffffffff; }), true;
  if (to == kU64 && from == kU32)
    return Map1<uint32_t>(x, out, [](uint32_t a) { return Put(a); }), true;
  return false;
}

}  // namespace

ColumnEvaluator::ColumnEvaluator(const Kernel& kernel, std::vector<ValueId> roots)
    : kernel_(kernel), roots_(std::move(roots)), columns_(kernel.nodes.size()) {
  std::vector<bool> needed(kernel.nodes.size(), false);
  for (ValueId root : roots_) needed[static_cast<size_t>(root)] = true;
  for (size_t i = kernel.nodes.size(); i-- > 0;) {
    if (!needed[i] || kernel.nodes[i].prim == Prim::kLoad) continue;
    for (ValueId operand : kernel.operands(ValueId(i))) needed[static_cast<size_t>(operand)] = true;
  }
  for (size_t i = 0; i < needed.size(); ++i)
    if (needed[i]) order_.push_back(ValueId(i));
}

std::vector<Column> ColumnEvaluator::Run(std::span<const Column> arguments) {
  arguments_ = arguments;
  size_t rows = arguments[0].size();
  for (ValueId id : order_) {
    columns_[static_cast<size_t>(id)].resize(rows);
    RunNode(id, rows);
  }
  std::vector<Column> results;
  for (ValueId root : roots_) results.push_back(columns_[static_cast<size_t>(root)]);
  return results;
}

void ColumnEvaluator::RunNode(ValueId id, size_t rows) {
  const ScalarNode& node = kernel_.node(id);
  Column& out = columns_[static_cast<size_t>(id)];
  if (node.prim == Prim::kConst) return std::fill(out.begin(), out.end(), node.bits);
  if (node.prim == Prim::kLoad) {
    out = arguments_[static_cast<size_t>(node.array())];
    return;
  }
  if (slow_) return RunNodeSlowly(id, rows);
  const Column* v[3] = {&out, &out, &out};
  for (size_t i = 0; i < static_cast<size_t>(node.arity()); ++i)
    v[i] = &columns_[static_cast<size_t>(node.operands[i])];
  ScalarType from = kernel_.node(node.operands[0]).type;
  if (node.prim == Prim::kBitcast) {
    out = *v[0];
    return;
  }
  if (node.prim == Prim::kSelect) {
    for (size_t i = 0; i < rows; ++i) out[i] = (*v[0])[i] != 0 ? (*v[1])[i] : (*v[2])[i];
    return;
  }
  bool done = node.prim == Prim::kConvert && Converts(node.type, from, *v[0], out);
  if (!done && from == ScalarType::kF32) done = FloatPrim<float>(node.prim, v, out);
  if (!done && from == ScalarType::kF64) done = FloatPrim<double>(node.prim, v, out);
  if (!done && from == ScalarType::kU32) done = IntPrim<uint32_t>(node.prim, v, out);
  if (!done && from == ScalarType::kS32) done = IntPrim<int32_t>(node.prim, v, out);
  if (!done && from == ScalarType::kU64) done = IntPrim<uint64_t>(node.prim, v, out);
  if (!done && from == ScalarType::kS64) done = IntPrim<int64_t>(node.prim, v, out);
  if (!done) RunNodeSlowly(id, rows);
}

void ColumnEvaluator::RunNodeSlowly(ValueId id, size_t rows) {
  const ScalarNode& node = kernel_.node(id);
  Column& out = columns_[static_cast<size_t>(id)];
  size_t arity = static_cast<size_t>(node.arity());
  ScalarType from = kernel_.node(node.operands[0]).type;
  for (size_t i = 0; i < rows; ++i) {
    Bits operands[3] = {};
    for (size_t k = 0; k < arity; ++k)
      operands[k] = columns_[static_cast<size_t>(node.operands[k])][i];
    std::optional<Bits> result = EvaluatePrim(node.prim, node.type, from, operands);
    if (!result && open_.size() < 10) open_.push_back({node.prim, i});
    out[i] = result.value_or(0);
  }
}

}  // namespace tokamak
